import java.util.ArrayList;
import java.util.List;

/**
 * A service in small: orders that stay in memory, and requests that look some of them up and make objects that nobody needs a
 * moment later. Arguments: orders, requests.
 */
public class Orders {
    record Item(int product, int pieces) {}

    record Order(long number, String customer, List<Item> items) {}

    private static long seed = 1;

    /** A number below a bound, the same ones in every run. */
    private static int below(int bound) {
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        return (int) ((seed >>> 33) % bound);
    }

    private static Order order(long number) {
        List<Item> items = new ArrayList<>();
        for (int i = below(4); i >= 0; i--) {
            items.add(new Item(below(1000), 1 + below(9)));
        }
        return new Order(number, "customer " + below(500), items);
    }

    public static void main(String[] words) {
        Order[] orders = new Order[Integer.parseInt(words[0])];
        for (int i = 0; i < orders.length; i++) {
            orders[i] = order(i);
        }
        long pieces = 0;
        for (int request = Integer.parseInt(words[1]); request > 0; request--) {
            StringBuilder page = new StringBuilder();
            for (int line = 0; line < 8; line++) {
                Order found = orders[below(orders.length)];
                page.append(found.number()).append(' ').append(found.customer()).append('\n');
                for (Item item : found.items()) {
                    pieces += item.pieces();
                }
            }
            if (page.length() % 50 == 0) {
                int changed = below(orders.length);
                orders[changed] = order(changed);
            }
        }
        System.out.println(pieces + " pieces");
    }
}
