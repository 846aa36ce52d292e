#include "prelude.h"
#include "randomize.h"
#include "secure.h"

/* One word of the keystream: the buffer is read inside, after a refill that leaves at least one word (secure.h). */
static void refill(void *owner)
{
    secure_stream *stream = owner;
    stream->next = (size_t)any_between(0, SECURE_WORDS - 1);
    stream->generation = secure_forks;
}

void check_secure_word(void)
{
    static uint64_t words[SECURE_WORDS];
    secure_stream stream = {words, (size_t)any_between(0, SECURE_WORDS), any_uint64(), refill, &stream};
    (void)secure_uint64(&stream);
    (void)secure_uint32(&stream);
    holds(stream.next <= SECURE_WORDS);
}
