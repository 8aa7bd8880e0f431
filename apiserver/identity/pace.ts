/** Answers whose duration must not reveal whether an address has a user. */
import type { Clock } from '../../kit/sys/clock.ts'

/** Longer than either branch takes: hashing a password dominates both. */
const UNIFORM_MILLISECONDS = 400

/** Starts now; the answer waits until the uniform time has passed. */
export function startPace(clock: Clock): () => Promise<void> {
  const begun = clock.monotonicMilliseconds()
  return () => clock.sleep(Math.max(0, begun + UNIFORM_MILLISECONDS - clock.monotonicMilliseconds()))
}
