/** Metrics of the streams of changes of this process. */
import { Counter, gaugesIn, type Registry } from '../../kit/sys/metrics.ts'

export interface FeedMetrics {
  readonly resets: Counter<'reason'>
  readonly cutOff: Counter
}

export function openFeedMetrics(registry: Registry, countStreams: () => number): FeedMetrics {
  const gauge = gaugesIn(registry)
  gauge('svccloud_change_streams', 'Open streams of changes', countStreams)
  return {
    resets: new Counter({
      name: 'svccloud_change_resets_total',
      help: 'Streams of changes whose reader was sent back to its lists',
      labelNames: ['reason'],
      registers: [registry],
    }),
    cutOff: new Counter({
      name: 'svccloud_change_readers_cut_off_total',
      help: 'Streams of changes that ended because their reader was too slow',
      registers: [registry],
    }),
  }
}
