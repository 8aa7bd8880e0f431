/** How changes of others arrive: by the stream, or by reading again. */
import { storeOf } from './store.ts'

export type LiveState = 'connecting' | 'live' | 'polling'

export const liveState = storeOf<LiveState>('connecting')
export const isLive = (): boolean => liveState.get() === 'live'
