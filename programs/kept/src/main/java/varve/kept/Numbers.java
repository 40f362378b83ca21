package varve.kept;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.IntSummaryStatistics;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Random;

/** Numbers and what makes them. */
final class Numbers {
    private Numbers() {
    }

    static void add(Suite suite) {
        suite.<BigInteger>replace("BigInteger", () -> new BigInteger("123456789012345678901234567890"), (n, s) -> {
            s.say(n, n.bitLength(), n.equals(new BigInteger(n.toString())), n.mod(BigInteger.TEN), n.signum());
            return n.multiply(BigInteger.valueOf(-7919)).add(BigInteger.ONE);
        });
        suite.<List<BigInteger>>change("BigInteger constants", () -> new ArrayList<>(List.of(BigInteger.ZERO, BigInteger.ONE, BigInteger.TEN)), (all, s) -> {
            s.say(all, all.get(0).equals(BigInteger.ZERO), all.get(1).add(all.get(2)).subtract(BigInteger.ONE).equals(BigInteger.TEN));
            all.add(BigInteger.TWO.pow(100 + s.n));
        });
        suite.<BigDecimal>replace("BigDecimal", () -> new BigDecimal("1.10"), (n, s) -> {
            s.say(n, n.scale(), n.precision(), n.compareTo(new BigDecimal("1.1")), n.equals(new BigDecimal("1.10")), n.stripTrailingZeros());
            return n.multiply(n).setScale(5 + s.n, RoundingMode.HALF_EVEN);
        });
        suite.<Object[]>change("MathContext and RoundingMode", () -> new Object[] {MathContext.DECIMAL32, RoundingMode.UP, new MathContext(3, RoundingMode.DOWN)},
            (all, s) -> s.say(all).say(all[1] == RoundingMode.UP, new BigDecimal("2.71828").round((MathContext) all[2]), all[0].equals(MathContext.DECIMAL32)));
        suite.<Object[]>change("Boxes", () -> new Object[] {(byte) -5, (short) 300, 'x', 70000, 1L << 50, 1.5f, -2.25, true}, (all, s) -> {
            s.say(all);
            s.say(all[0].equals((byte) -5), all[1].equals((short) 300), all[2].equals('x'), all[3].equals(70000), all[4].equals(1L << 50), all[5].equals(1.5f),
                all[6].equals(-2.25), all[7].equals(true), all[0].hashCode(), all[4].hashCode(), all[6].hashCode(), all[7].hashCode());
            all[0] = (byte) ((Byte) all[0] * 3);
            all[1] = (short) ((Short) all[1] * 3);
            all[2] = (char) ((Character) all[2] + 1);
            all[3] = (Integer) all[3] * 3;
            all[4] = (Long) all[4] * 3;
            all[5] = (Float) all[5] * 3;
            all[6] = (Double) all[6] * 3;
            all[7] = !(Boolean) all[7];
        });
        suite.<Object[]>change("Extreme numbers", () -> new Object[] {Byte.MIN_VALUE, Short.MAX_VALUE, Character.MAX_VALUE, Integer.MIN_VALUE, Long.MIN_VALUE,
            Float.NaN, Double.NEGATIVE_INFINITY, -0.0, Float.MIN_VALUE, Double.NaN}, (all, s) -> s.say((int) (Character) all[2], all[0], all[1], all[3], all[4],
                all[5], all[6], all[7], all[5].equals(Float.NaN), all[7].equals(0.0), all[9].equals(0.0 / 0.0), Float.floatToIntBits((Float) all[8]),
                Double.doubleToLongBits((Double) all[9])));
        suite.<Random>change("Random", () -> new Random(42), (random, s) -> s.say(random.nextLong(), random.nextBoolean(),
            random.nextInt()));
        suite.<IntSummaryStatistics>change("IntSummaryStatistics", IntSummaryStatistics::new, (all, s) -> {
            s.say(all.getCount(), all.getSum(), all.getMax());
            all.accept(s.n * 3);
            all.accept(-1);
        });
        suite.<Object[]>change("Long and DoubleSummaryStatistics", () -> new Object[] {new LongSummaryStatistics(), new DoubleSummaryStatistics()}, (all, s) -> {
            s.say(((LongSummaryStatistics) all[0]).getSum(), ((DoubleSummaryStatistics) all[1]).getSum(), ((DoubleSummaryStatistics) all[1]).getMin());
            ((LongSummaryStatistics) all[0]).accept(1L << (30 + s.n));
            ((DoubleSummaryStatistics) all[1]).accept(s.n * 0.5 + 1);
        });
    }
}
