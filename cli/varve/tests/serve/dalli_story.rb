# What Dalli does with a server on the port that is given: it speaks the meta commands.
require 'dalli'

def same(found, expected, what)
  abort "#{what}: #{found.inspect}, not #{expected.inspect}" unless found == expected
end

client = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", protocol: :meta, raise_errors: true)

client.set('text', 'Grüße')
same(client.get('text'), 'Grüße', 'get')
client.set('object', { 'a' => [1, 2.5, nil], b: :c })
same(client.get('object'), { 'a' => [1, 2.5, nil], b: :c }, 'get of a hash')
same(client.get('none'), nil, 'get of nothing')
same(client.add('text', 'x'), false, 'add')
same(client.replace('none', 'x'), false, 'replace')

client.set('number', '41', 0, raw: true)
same(client.incr('number'), 42, 'incr')
same(client.decr('number', 50), 0, 'decr')
same(client.incr('counted', 1, 0, 10), 10, 'incr of nothing, with a first value')
same(client.incr('counted', 5, 0, 10), 15, 'incr')

client.append('number', '7')
same(client.get('number', raw: true).strip.end_with?('7'), true, 'append')

same(client.cas('text') { |value| value + '!' } ? true : false, true, 'cas')
same(client.get('text'), 'Grüße!', 'get after cas')
same(client.touch('text', 100), true, 'touch')
same(client.gat('text', 200), 'Grüße!', 'gat')

many = (0...300).to_h { |i| ["many#{i}", "v#{i}" * i] }
client.quiet { many.each { |key, value| client.set(key, value) } }
same(client.get_multi(*many.keys), many, 'get_multi')

# A key that is not ASCII goes in base 64.
client.set('schlüssel', 'wert')
same(client.get('schlüssel'), 'wert', 'get of a key that is encoded')

client.set('short', 'x', 1)
same(client.get('short'), 'x', 'get of a value that expires')
sleep 2.1
same(client.get('short'), nil, 'get of a value that has expired')

same(client.delete('text'), true, 'delete')
same(client.get('text'), nil, 'get after delete')
client.flush
same(client.get('many7'), nil, 'get after flush')
puts 'done'
