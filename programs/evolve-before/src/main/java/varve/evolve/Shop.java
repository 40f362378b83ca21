package varve.evolve;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Everything that is durable. */
final class Shop {
    final List<Ware> wares = new ArrayList<>();
    /** Its classes have fields whose names others have too. */
    final ArrayDeque<String> visitors = new ArrayDeque<>();
    final Map<Mood, Integer> moods = new EnumMap<>(Mood.class);
    /** Objects that stand for classes. */
    final Object[] kinds = {Ware.class, int[].class, Ware[].class, Customer.class};
    Mood mood = Mood.CALM;
    Greeting keep = Greetings.keep();
    Greeting drop = Greetings.drop();
    Customer best = new Customer("Ada", 1815);
    /** Nobody is one of them in the next version. */
    Object passing = new Passing();
}
