// Package kai keeps KAI's scheduler among the modules of this folder: bench/scheduler.py runs its own benchmarks.
package kai

import _ "github.com/kai-scheduler/KAI-scheduler/pkg/scheduler/actions"
