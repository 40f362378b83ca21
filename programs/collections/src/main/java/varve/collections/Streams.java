package varve.collections;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import varve.common.Rng;

/** A few questions to a list of orders, asked by streams. */
final class Streams {
    private record Order(int customer, String city, int cents) {
    }

    private static final String[] CITIES = { "Bern", "Graz", "Kiel", "Linz", "Metz", "Oslo", "Riga", "Turku" };

    private Streams() {
    }

    static void run(int size) {
        Rng rng = new Rng(7);
        List<Order> orders = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            orders.add(new Order(rng.below(size / 10), CITIES[rng.below(CITIES.length)], 100 + rng.below(100_000)));
        }
        Map<String, Long> byCity = orders.stream()
                .collect(Collectors.groupingBy(Order::city, TreeMap::new, Collectors.counting()));
        System.out.println("orders by city: " + byCity);

        Map<String, Integer> sums = orders.stream()
                .filter(o -> o.cents() > 50_000)
                .collect(Collectors.toMap(Order::city, o -> o.cents() / 100, Integer::sum, TreeMap::new));
        System.out.println("large orders: " + sums);

        List<Integer> best = orders.stream()
                .collect(Collectors.groupingBy(Order::customer, Collectors.summingInt(Order::cents)))
                .entrySet().stream()
                .sorted(Map.Entry.<Integer, Integer>comparingByValue(Comparator.reverseOrder()).thenComparing(Map.Entry.comparingByKey()))
                .limit(5).map(Map.Entry::getKey).collect(Collectors.toList());
        System.out.println("best customers: " + best);

        System.out.println("cities: " + orders.stream().map(Order::city).distinct().sorted(Comparator.reverseOrder())
                .collect(Collectors.joining(", ", "[", "]")));
        Optional<Order> dearest = orders.stream().max(Comparator.comparingInt(Order::cents).thenComparingInt(Order::customer));
        System.out.println("dearest: " + dearest.map(Order::cents).orElse(0));
        System.out.println("squares: " + IntStream.range(0, size).filter(i -> i % 3 == 1).mapToLong(i -> (long) i * i).sum());
        System.out.println("digits: " + IntStream.range(0, size).boxed().flatMap(i -> Stream.of(i, i * 2)).map(String::valueOf)
                .mapToInt(String::length).sum());
        System.out.println("halves: " + orders.stream().collect(Collectors.partitioningBy(o -> o.cents() % 2 == 0,
                Collectors.counting())));
        System.out.println("no order of nothing: " + orders.stream().noneMatch(o -> o.cents() == 0));
    }
}
