//! sysbench, served: its command line, its Lua interface and its reports, on the load engine.
