# shellcheck shell=bash disable=SC2034 # the counts are for whoever reads this in
# Adds up what tests have reported, in passed, failed and skipped. A command that fails without a word of which test did
# counts as a failed one.
passed=0 failed=0 skipped=0

# What TAP marks with SKIP counts as neither, whether it says "ok" or, as cmocka does, "not ok".
count_tap() { # LOG STATUS
    local bad left
    left=$(grep -cE '^(not )?ok\b.*# SKIP' "$1")
    bad=$(grep -E '^not ok\b' "$1" | grep -vc '# SKIP')
    passed=$((passed + $(grep -cE '^(not )?ok\b' "$1") - bad - left))
    skipped=$((skipped + left))
    add_failed "$bad" "$2"
}

count_junit() { # FILE STATUS
    local bad left
    left=$(attribute "$1" skipped)
    bad=$(($(attribute "$1" failures) + $(attribute "$1" errors)))
    passed=$((passed + $(attribute "$1" tests) - bad - left))
    skipped=$((skipped + left))
    add_failed "$bad" "$2"
}

attribute() { # FILE NAME: that of the first <testsuite …>
    grep -o '<testsuite [^>]*>' "$1" | head -n 1 | grep -o " $2=\"[0-9]*\"" | tr -dc 0-9
}

add_failed() { # COUNT STATUS
    if [ "$1" = 0 ] && [ "$2" != 0 ]; then set -- 1; fi
    failed=$((failed + $1))
}
