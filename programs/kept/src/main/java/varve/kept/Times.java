package varve.kept;

import java.text.SimpleDateFormat;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Month;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.Date;
import java.util.GregorianCalendar;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;

/** {@code java.time}. */
final class Times {
    private Times() {
    }

    static void add(Suite suite) {
        suite.<LocalDate>replace("LocalDate", () -> LocalDate.of(2024, 2, 28), (d, s) -> {
            s.say(d, d.isLeapYear(), d.getDayOfWeek(), d.equals(LocalDate.parse(d.toString())), d.hashCode(), ChronoUnit.DAYS.between(d, LocalDate.of(2025, 1, 1)));
            return d.plusDays(1).plusMonths(s.n);
        });
        suite.<LocalTime>replace("LocalTime", () -> LocalTime.of(23, 59, 58, 7), (t, s) -> {
            s.say(t, t.toSecondOfDay(), t.isAfter(LocalTime.NOON), t.equals(LocalTime.MIDNIGHT));
            return s.n == 1 ? LocalTime.MIDNIGHT : t.plusSeconds(3 + s.n);
        });
        suite.<LocalDateTime>replace("LocalDateTime", () -> LocalDateTime.of(1999, 12, 31, 23, 59), (t, s) -> {
            s.say(t, t.getMonth(), t.toLocalDate());
            return t.plusMinutes(1 + s.n);
        });
        suite.<Instant>replace("Instant", () -> Instant.ofEpochSecond(1_000_000_000, 5), (t, s) -> {
            s.say(t, t.toEpochMilli(), t.equals(Instant.EPOCH));
            return s.n == 1 ? Instant.EPOCH : t.plus(Duration.ofHours(s.n + 1));
        });
        suite.<Duration>replace("Duration", () -> Duration.ZERO, (d, s) -> {
            s.say(d, d.isZero(), d.toMillis(), d.equals(Duration.ZERO));
            return d.plusSeconds(90).plusNanos(s.n);
        });
        suite.<Period>replace("Period", () -> Period.of(1, 2, 3), (p, s) -> {
            s.say(p, p.toTotalMonths(), p.equals(Period.of(1, 2, 3)));
            return p.plusDays(s.n);
        });
        suite.<ZonedDateTime>replace("ZonedDateTime in UTC", () -> ZonedDateTime.of(2024, 3, 31, 0, 30, 0, 0, ZoneId.of("UTC")), (t, s) -> {
            s.say(t, t.toInstant(), t.getZone());
            return t.plusHours(1 + s.n);
        });
        suite.<OffsetDateTime>replace("OffsetDateTime", () -> OffsetDateTime.of(2024, 1, 1, 1, 1, 1, 0, ZoneOffset.ofHours(2)), (t, s) -> {
            s.say(t, t.getOffset(), t.toInstant(), t.getOffset().equals(ZoneOffset.ofHours(2)));
            return t.plusHours(s.n + 1);
        });
        suite.<Object[]>change("ZoneOffset and OffsetTime", () -> new Object[] {ZoneOffset.UTC, ZoneOffset.ofHoursMinutes(5, 30), OffsetTime.of(1, 2, 3, 4, ZoneOffset.UTC)},
            (all, s) -> s.say(all).say(all[0].equals(ZoneOffset.UTC), all[1].equals(ZoneOffset.of("+05:30"))));
        suite.<Object[]>change("Year, YearMonth and MonthDay", () -> new Object[] {Year.of(2024), YearMonth.of(2024, 2), MonthDay.of(2, 29)}, (all, s) -> {
            s.say(all).say(((YearMonth) all[1]).lengthOfMonth(), ((MonthDay) all[2]).isValidYear(2023));
            all[0] = ((Year) all[0]).plusYears(s.n);
            all[1] = ((YearMonth) all[1]).plusMonths(s.n);
        });
        suite.<Map<DayOfWeek, Month>>change("DayOfWeek and Month", TreeMap::new, (map, s) -> {
            s.say(map, map.get(DayOfWeek.MONDAY) == Month.JANUARY);
            map.put(DayOfWeek.of(s.n + 1), Month.of(s.n + 1));
        });
        suite.<Map<LocalDate, List<Duration>>>change("Dates as keys", HashMap::new, (map, s) -> {
            s.sorted(map).say(map.get(LocalDate.of(2024, 1, 1)), map.containsKey(LocalDate.ofEpochDay(19723)));
            map.computeIfAbsent(LocalDate.of(2024, 1, 1 + s.n / 2), d -> new ArrayList<>()).add(Duration.ofMinutes(s.n));
        });
        suite.<Date>change("Date", () -> new Date(951_782_400_000L), (d, s) -> {
            s.say(d.getTime(), d.hashCode(), d.equals(new Date(951_782_400_000L)), d.before(new Date(0)));
            d.setTime(d.getTime() + 86_400_000L * (s.n + 1));
        });
        suite.<Calendar>change("Calendar", () -> {
            Calendar calendar = new GregorianCalendar(TimeZone.getTimeZone("GMT"));
            calendar.setTimeInMillis(951_782_400_000L);
            return calendar;
        }, (c, s) -> {
            s.say(c.getTimeInMillis(), c.get(Calendar.YEAR), c.get(Calendar.MONTH), c.get(Calendar.DAY_OF_MONTH));
            c.add(Calendar.MONTH, 1 + s.n);
        });
        suite.<SimpleDateFormat>change("SimpleDateFormat", () -> {
            SimpleDateFormat format = new SimpleDateFormat("yyyy-MM-dd HH:mm", Locale.ENGLISH);
            format.setTimeZone(TimeZone.getTimeZone("GMT"));
            return format;
        }, (f, s) -> s.say(f.format(new Date(951_782_400_000L + s.n * 60_000L)), f.toPattern()));
        suite.<DateTimeFormatter[]>change("DateTimeFormatter", () -> new DateTimeFormatter[] {DateTimeFormatter.ISO_LOCAL_DATE,
            DateTimeFormatter.ofPattern("dd.MM.uuuu HH:mm")}, (all, s) -> s.say(all[0].format(LocalDate.of(2024, 1, s.n + 1)),
                all[1].format(LocalDateTime.of(2024, 1, 1, 1, s.n))));
    }
}
