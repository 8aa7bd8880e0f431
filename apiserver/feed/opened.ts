/** What all readers of changes share. */
import type { Customer } from '../../kit/http/call.ts'
import type { Room } from '../../kit/http/channel.ts'
import type { FeedMetrics } from './metrics.ts'
import type { Streams } from './streams.ts'

export interface FeedParts {
  readonly streams: Streams
  readonly room: Room
  readonly metrics: FeedMetrics
}

/** Streams are counted for each session or token. */
export const holderOf = ({ session, token, userId }: Customer): string => session?.id ?? token?.id ?? userId
