import { expect, test } from 'vitest'
import {
  type ConsoleEvent,
  type ConsoleLine,
  openConsole,
  type Whereabouts,
} from '../../../apiserver/console/console.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { eventually } from '../../eventually.ts'

test('follows a server to its next host although the last one keeps the stream open', async () => {
  let move = (_now: Whereabouts) => {}
  const closed: string[] = []
  async function* follow(node: string, signal: AbortSignal): AsyncGenerator<ConsoleLine> {
    yield { type: 'tail', data: Buffer.from(node).toString('base64'), log: node, end: 1 }
    yield { type: 'status', connected: true, running: true }
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    closed.push(node)
  }
  const console = openConsole({
    clock,
    random,
    follow,
    watch: (changed) => {
      move = changed
      changed({ state: 'started', node: 'a' })
      return () => {}
    },
    onEmpty: () => {},
  })
  const logs: string[] = []
  const leave = console.join((event: ConsoleEvent) => void (event.event === 'bytes' && logs.push(event.log)))
  await eventually('the first host', () => logs.includes('a') || undefined)
  for (const node of ['b', 'c']) {
    move({ state: 'started', node })
    await eventually('the next host', () => logs.includes(node) || undefined)
  }
  expect(closed).toEqual(['a', 'b'])
  leave()
})
