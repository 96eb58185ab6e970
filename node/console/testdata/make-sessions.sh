#!/bin/sh
# Writes what erl of OTP 25 prints when it reads each .txt, without the banner. Run it in this
# directory.
set -eu
for session in *.txt; do
	erl <"$session" | tail -n +2 >"${session%.txt}.out"
done
