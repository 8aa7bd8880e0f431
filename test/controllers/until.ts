/** Waiting for what controllers bring about. */
import { until as patiently } from '../eventually.ts'

const PATIENCE_MILLISECONDS = 30_000

/** Looks until it is so; says what was seen last when it never is. */
export const until = <Seen>(
  what: string,
  look: () => Promise<Seen>,
  isSo: (observed: Seen) => boolean,
): Promise<Seen> => patiently(what, look, isSo, PATIENCE_MILLISECONDS)
