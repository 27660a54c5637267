#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sha256.h"

static const char a_million[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

/* The examples of FIPS 180-4 and its companions. */
static void known_answers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[SHA256_HEX_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sha256_hex(cases[i].text, strlen(cases[i].text), hex);
        assert_string_equal(hex, cases[i].hex);
    }
}

static void a_file_longer_than_any_buffer(void **state)
{
    (void)state;
    char name[] = "/tmp/test_sha256.XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    char *text = malloc(1000000);
    memset(text, 'a', 1000000);
    assert_int_equal(write(fd, text, 1000000), 1000000);
    char hex[SHA256_HEX_SIZE];
    sha256_hex(text, 1000000, hex);
    assert_string_equal(hex, a_million);
    free(text);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    memset(hex, 0, sizeof hex);
    assert_int_equal(sha256_file(fd, hex), 0);
    assert_string_equal(hex, a_million);
    close(fd);
}

static void what_cant_be_read_is_an_error(void **state)
{
    (void)state;
    char hex[SHA256_HEX_SIZE];
    assert_int_equal(sha256_file(-1, hex), -1);
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    assert_int_equal(sha256_file(fd, hex), -1);
    close(fd);
}

static void no_signal(int signal)
{
    (void)signal;
}

/* A read that a signal interrupts goes on. */
static void an_interrupted_read_goes_on(void **state)
{
    (void)state;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    struct sigaction quiet = {.sa_handler = no_signal}, before;
    sigaction(SIGUSR1, &quiet, &before);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++, usleep(5000))
            kill(parent, SIGUSR1);
        _exit(write(ends[1], "abc", 3) != 3);
    }
    close(ends[1]);
    char hex[SHA256_HEX_SIZE], want[SHA256_HEX_SIZE];
    int result = sha256_file(ends[0], hex);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(result, 0);
    sha256_hex("abc", 3, want);
    assert_string_equal(hex, want);
}

static void in_pieces(void **state)
{
    (void)state;
    char hex[SHA256_HEX_SIZE], want[SHA256_HEX_SIZE];
    sha256_hex("abcdef", 6, want);
    struct sha256 *sum = sha256_begin();
    sha256_add(sum, "ab", 2);
    sha256_add(sum, "", 0);
    sha256_add(sum, "cdef", 4);
    sha256_end(sum, hex);
    assert_string_equal(hex, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(a_file_longer_than_any_buffer),
        cmocka_unit_test(what_cant_be_read_is_an_error),
        cmocka_unit_test(an_interrupted_read_goes_on),
        cmocka_unit_test(in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
