# A short run of the fuzzer over all programs of the project; `make fuzz` runs a long one.
mutate=${MUTATE:-build/mutate}
exec "$mutate" -n "${N:-3000}" -o build/fuzz-failure.nr $(find examples/ tests/conformance/ -name '*.nr' | sort)
