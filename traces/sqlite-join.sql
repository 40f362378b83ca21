-- Documents of 16 KB with an index over their keys, then a join that asks for some keys far more often than for others.
create table doc(id integer primary key, key int, body blob);
insert into doc select value, value * 337 % 547, zeroblob(16000) from generate_series(1, 546);
create index doc_key on doc(key);
create table ask(key int);
insert into ask select (value * 271 % 547) * (value * 167 % 547) / 547 * (value * 89 % 547) / 547 from generate_series(1, 850);
select count(*), sum(length(substr(d.body, 8000, 50))) from ask a join doc d on d.key = a.key;
