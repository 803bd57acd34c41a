"""``python -m shoal.gangs.startup --podcliques=CLIQUE:NUMBER …`` waits until so many pods of each clique are ready."""

from shoal.gangs.startup.program import main

raise SystemExit(main())
