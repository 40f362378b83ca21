package Waits;
# memcached's debug build has a command that moves its clock. Here time goes by.
INIT {
    no strict 'refs';
    no warnings 'redefine';
    if (defined &MemcachedTest::mem_move_time) {
        my $wait = sub { select undef, undef, undef, $_[1] + 1.1 };
        *{'MemcachedTest::mem_move_time'} = $wait;
        *{'main::mem_move_time'} = $wait;
    }
}
1;
