module shoal.example/bench/peers/kai

go 1.26.3

require github.com/kai-scheduler/KAI-scheduler v0.17.0
