/* The least that a static program can do: what every start-up time is measured against. */
int main(void)
{
    return 0;
}
