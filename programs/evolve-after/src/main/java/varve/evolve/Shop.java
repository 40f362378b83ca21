package varve.evolve;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Everything that is durable: of other classes than before in part, and with one field less and one more. */
final class Shop {
    Account best = new Account("Ada", 1815);
    Greeting drop = Greetings.drop();
    Greeting keep = Greetings.keep();
    Mood mood = Mood.CALM;
    final Object[] kinds = {Ware.class, int[].class, Ware[].class, Account.class};
    final Map<Mood, Integer> moods = new EnumMap<>(Mood.class);
    final ArrayDeque<String> visitors = new ArrayDeque<>();
    final List<Ware> wares = new ArrayList<>();
    int opened;
}
