"""Serving engines, each behind the same few calls.

`outcome` says what a stream can become, `llamacpp` speaks llama.cpp's HTTP, `child` and
`attached` say where that server is, `keeper` starts it again when it dies. `llama_host` is the
child process itself and `faults` an engine that misbehaves on request, for tests.
"""
