<?php
// What php-memcached, above libmemcached, does with a server on the port that is given: all that an application uses.
function same($found, $expected, $what) {
    if ($found !== $expected) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ", not " . var_export($expected, true) . "\n");
        exit(1);
    }
}

foreach ([false, true] as $quiet) {
    $m = new Memcached();
    $m->setOption(Memcached::OPT_BINARY_PROTOCOL, false);
    $m->setOption(Memcached::OPT_NOREPLY, $quiet);
    $m->addServer('127.0.0.1', (int) $argv[1]);

    same($m->set('text', 'Grüße'), true, 'set');
    same($m->get('text'), 'Grüße', 'get');
    same($m->set('object', ['a' => [1, 2.5, null], 'b' => true]), true, 'set of an array');
    same($m->get('object'), ['a' => [1, 2.5, null], 'b' => true], 'get of an array');
    same($m->set('number', 41), true, 'set of a number');
    if (!$quiet) {
        same($m->increment('number'), 42, 'increment');
        same($m->decrement('number', 50), 0, 'decrement');
        same($m->add('text', 'x'), false, 'add');
        same($m->getResultCode(), Memcached::RES_NOTSTORED, 'code of add');
        same($m->replace('none', 'x'), false, 'replace');
        $found = $m->get('text', null, Memcached::GET_EXTENDED);
        same($m->cas($found['cas'], 'text', 'new'), true, 'cas');
        same($m->cas($found['cas'], 'text', 'newer'), false, 'cas again');
        same($m->getResultCode(), Memcached::RES_DATA_EXISTS, 'code of cas');
        same($m->delete('none'), false, 'delete');
        same($m->touch('text', 100), true, 'touch');
    }

    $many = [];
    for ($i = 0; $i < 300; $i++) {
        $many["many$i"] = str_repeat("v$i", $i);
    }
    same($m->setMulti($many), true, 'setMulti');
    same($m->getMulti(array_keys($many)), $many, 'getMulti');

    // An error to a client that reads none would be taken for the answer to the next command.
    $large = str_repeat('x', 2 << 20);
    $m->setOption(Memcached::OPT_COMPRESSION, false);
    same($m->set('large', $large), $quiet, 'set of a value too large');
    same($m->get('many7'), $many['many7'], 'get after it');
    same($m->flush(), true, 'flush');
    same($m->get('text'), false, 'get after flush');
}
$m->setOption(Memcached::OPT_NOREPLY, false);
$stats = array_values($m->getStats())[0];
same($stats['curr_items'], 0, 'curr_items');
echo "done\n";
