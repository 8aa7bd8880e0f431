/** The checker of writes finds an object that is written without end, says what repeats, and the run ends by it. */
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../embedded/kubernetes/core/object.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { progressOf } from '../progress.ts'
import { operation } from '../controllers/nouns/server/worlds.ts'
import { Scheduler } from './scheduler.ts'
import { watchWrites, WRITES_MAXIMUM } from './writes.ts'

const server = (id: string, isFailed: boolean): KubeObject => {
  const stanza = operation('server.start', id)
  const progress = progressOf(stanza, { status: 'failed', error: 'There is no Secret.' })
  return {
    apiVersion: '',
    kind: 'Server',
    metadata: { name: 'web' },
    spec: { operation: stanza },
    ...(isFailed ? { status: { operation: progress } } : {}),
  } as unknown as KubeObject // what the watch reads of it
}

interface Written {
  readonly times: number
  readonly everyMilliseconds: number
  readonly isCalm?: boolean
  readonly keyOf?: (time: number) => string
}
/** Lets somebody write a server that fails to start; answers what ended the run. */
async function written({ times, everyMilliseconds, isCalm = true, keyOf = () => 'acct-1/web' }: Written) {
  const scheduler = new Scheduler(1)
  const storage = watchWrites(memoryStorage(), {
    nowMilliseconds: () => scheduler.nowMilliseconds,
    isCalm: () => isCalm,
    onExcess: (violation) => scheduler.giveUp(violation),
  })
  for (let time = 0; time < times; time += 1)
    scheduler.after(time * everyMilliseconds, () => {
      const object = server(`op-${Math.floor(time / 2)}`, time % 2 === 1)
      void storage.append({ revision: time + 1, storageKey: 'svccloud.dev/servers', key: keyOf(time), object })
    })
  try {
    await scheduler.runUntil(times * everyMilliseconds)
    return undefined
  } catch (error) {
    return String(error)
  }
}

describe('in the calm', () => {
  it('an object that is written again and again ends the run, and the violation says what repeats', async () => {
    expect(await written({ times: 10_000, everyMilliseconds: 12 })).toBe(
      `Endless: svccloud.dev/servers acct-1/web is written ${WRITES_MAXIMUM + 1} times within a minute of the calm: ` +
        'server.start is new; server.start failed: There is no Secret.',
    )
  })
  it.each<readonly [string, Written]>([
    ['as many writes as the bound', { times: WRITES_MAXIMUM, everyMilliseconds: 1 }],
    ['more of them over a longer time', { times: 10 * WRITES_MAXIMUM, everyMilliseconds: 700 }],
    ['more of them to many objects', { times: 1_000, everyMilliseconds: 1, keyOf: (time) => `acct-1/${time % 10}` }],
    ['more of them while the world is disturbed', { times: 1_000, everyMilliseconds: 1, isCalm: false }],
  ])('%s are allowed', async (_what, writes) => {
    expect(await written(writes)).toBeUndefined()
  })
})
