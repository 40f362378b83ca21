package varve.evolve;

import java.util.EnumSet;
import varve.Varve;

/** A shop in its first version; {@code evolve-after} has the next one, of the same classes. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        String what = arguments.length == 0 ? "show" : arguments[0];
        if (what.equals("lambda")) {
            lambda();
            return;
        }
        if (what.equals("set")) {
            Varve.setRoot("moods", EnumSet.of(Mood.CALM));
            return;
        }
        if (what.equals("notes")) {
            Notes.show();
            return;
        }
        Shop shop = Varve.root("shop", Main::open);
        if (what.equals("leave")) {
            shop.passing = null;
        }
        Ware ware = shop.wares.get(0);
        System.out.println(ware.name + " " + ware.small + " " + ware.medium + " " + (int) ware.letter + " " + ware.large + " " + ware.real + " "
                + ware.price + " " + ware.weight + " " + ware.next + " " + ((Thing) ware).next);
        System.out.println(shop.visitors + " " + shop.mood + " " + shop.mood.says() + " " + shop.moods);
        System.out.println(shop.keep.greet() + " " + shop.drop.greet());
        System.out.println((shop.kinds[0] == Ware.class) + " " + (shop.kinds[1] == int[].class) + " " + (shop.kinds[2] == Ware[].class) + " "
                + (shop.kinds[3] == Customer.class) + " " + ((Class<?>) shop.kinds[3]).getName());
        System.out.println(shop.best.name + " " + shop.best.year + " " + shop.best.address.street);
    }

    private static Shop open() {
        Shop shop = new Shop();
        shop.wares.add(new Ware("kettle", 1L << 40));
        shop.visitors.add("Grace");
        shop.moods.put(Mood.MERRY, 2);
        shop.moods.put(Mood.CALM, 1);
        shop.moods.put(Mood.PLAIN, 3);
        return shop;
    }

    private static void lambda() {
        Greeting keep = () -> "KEEP";
        Varve.setRoot("greeting", keep);
        System.out.println(keep.greet());
    }
}
