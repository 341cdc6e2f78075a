/* For tests in C: CHECK(claim) counts, test_end() prints "N passed, N failed" and gives the exit status. */
#ifndef TEST_H_INCLUDED
#define TEST_H_INCLUDED
#include <stdio.h>

static int test_passed;
static int test_failed;

#define CHECK(claim) test_check((claim) ? 1 : 0, __FILE__, __LINE__, #claim, "")
/* The same with a word on the case at hand. */
#define CHECK_FOR(claim, word) test_check((claim) ? 1 : 0, __FILE__, __LINE__, #claim, word)

static void
test_check(int holds, const char *file, int line, const char *claim, const char *word)
{
    if (holds) {
        test_passed += 1;
        return;
    }
    test_failed += 1;
    printf("FAIL %s:%d: %s %s\n", file, line, claim, word);
}

static int
test_end(void)
{
    printf("%d passed, %d failed\n", test_passed, test_failed);
    return test_failed > 0;
}

#endif /* TEST_H_INCLUDED */
