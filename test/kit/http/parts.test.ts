/** Cursors, client addresses, budgets, channels, entity tags: the small parts of the pipeline, each alone. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createChannel, createRoom, type Room } from '../../../kit/http/channel.ts'
import { etagOf, requireMatch } from '../../../kit/http/conditional.ts'
import { createCursors } from '../../../kit/http/cursor.ts'
import type { RequestFacts } from '../../../kit/http/call.ts'
import { factsReader } from '../../../kit/http/facts.ts'
import { createBuckets } from '../../../kit/http/rates.ts'
import { addressKey } from '../../../kit/http/steps/limit-address.ts'
import { movableClock } from './clock.ts'

describe('cursors', () => {
  const cursors = createCursors(Buffer.alloc(32, 7))
  const position = { sortKey: '2026-03-01T12:00:00Z', id: 'a.b-c' }

  test('come back as they were, for the list and account they were made for', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes('.') && text.isWellFormed()),
        fc.string({ minLength: 1 }).filter((text) => text.isWellFormed()),
        (sortKey, id) => {
          expect(cursors.decode('list', 'acc', cursors.encode('list', 'acc', { sortKey, id }))).toEqual({ sortKey, id })
        },
      ),
    )
  })

  test('are base64url of v1.<sort key>.<id> and 16 bytes', () => {
    const bytes = Buffer.from(cursors.encode('list', 'acc', position), 'base64url')
    expect(bytes.subarray(0, -16).toString()).toBe('v1.2026-03-01T12:00:00Z.a.b-c')
  })

  test('are refused elsewhere, by another key, and with any bit changed', () => {
    const cursor = cursors.encode('list', 'acc', position)
    const refused = (text: string, list = 'list', account = 'acc') =>
      expect(() => cursors.decode(list, account, text), text).toThrow(expect.objectContaining({ status: 400 }))
    refused(cursor, 'other')
    refused(cursor, 'list', 'other')
    expect(() => createCursors(Buffer.alloc(32, 8)).decode('list', 'acc', cursor)).toThrow()
    for (const text of ['', 'x', `${cursor}=`, `${cursor}A`, cursor.slice(1), cursor.toUpperCase()]) refused(text)
    const bytes = Buffer.from(cursor, 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      refused(changed.toString('base64url'))
    }
  })
})

describe('the client address', () => {
  const addressOf = (trusted: readonly string[], peer: string, forwardedFor?: string) =>
    factsReader(trusted)(
      {
        method: 'GET',
        target: '/',
        headers: { 'x-forwarded-for': forwardedFor },
        remoteAddress: peer,
        signal: new AbortController().signal,
      },
      'id',
    ).sourceIp

  test.each([
    ['nobody is trusted by default', [], '192.0.2.1', '203.0.113.9', '192.0.2.1'],
    ['a trusted proxy is believed', ['10.0.0.0/8'], '10.1.2.3', '203.0.113.9', '203.0.113.9'],
    [
      'only the last hop that is not ours counts, whatever the client wrote before',
      ['10.0.0.0/8'],
      '10.1.2.3',
      '127.0.0.1, 203.0.113.9, 10.9.9.9',
      '203.0.113.9',
    ],
    ['a stranger is not believed', ['10.0.0.0/8'], '203.0.113.50', '127.0.0.1', '203.0.113.50'],
    ['what is no address ends the walk', ['10.0.0.0/8'], '10.1.2.3', '203.0.113.9, unknown', '10.1.2.3'],
    ['a trusted IPv6 proxy', ['2001:db8::/32'], '2001:db8::1', '2001:db8:ffff::1, 198.51.100.4', '198.51.100.4'],
    ['an IPv4 peer of a dual-stack socket', ['10.0.0.1'], '::ffff:10.0.0.1', '::ffff:198.51.100.4', '198.51.100.4'],
  ])('%s', (_what, trusted, peer, forwardedFor, expected) => {
    expect(addressOf(trusted, peer, forwardedFor)).toBe(expected)
  })

  test('a proxy that is none is a mistake of the configuration', () => {
    expect(() => factsReader(['proxy.example'])).toThrow('proxy.example')
  })

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
  ])('%s counts as %s', (address, key) => {
    expect(addressKey(address)).toBe(key)
  })
})

test('a bucket never lets more through than its burst and its rate allow, and the wait it names is enough', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { maxLength: 200 }), (pauses) => {
      const clock = movableClock()
      const take = createBuckets(clock)
      const budget = { name: 'b', perMinute: 60, burst: 5 }
      let allowed = 0
      let seconds = 0
      for (const pause of pauses) {
        clock.move(pause)
        seconds += pause
        const state = take(budget, 'key')
        if (state.retryAfterSeconds === 0) allowed++
        else {
          clock.move(state.retryAfterSeconds)
          seconds += state.retryAfterSeconds
          expect(take(budget, 'key').retryAfterSeconds).toBe(0)
          allowed++
        }
      }
      expect(allowed).toBeLessThanOrEqual(5 + seconds + 1e-6)
    }),
  )
})

describe('channels', () => {
  const open = (signal = new AbortController().signal, sizeMaximum = 100, room?: Room) => {
    let closed = 0
    let cutOff = 0
    const channel = createChannel<string>({
      sizeMaximum,
      room,
      sizeOf: (text) => text.length,
      signal,
      onCutOff: () => void cutOff++,
      onClosed: () => void closed++,
    })
    return { channel, closed: () => closed, cutOff: () => cutOff }
  }
  const readAll = async (channel: AsyncIterable<string>) => {
    const read = []
    for await (const item of channel) read.push(item)
    return read
  }

  test('what was pushed is read in order, also after the end; nothing goes in afterwards', async () => {
    const { channel, closed } = open()
    channel.push('a')
    const reading = readAll(channel)
    channel.push('b')
    channel.end()
    expect(channel.push('c')).toBe(false)
    expect(await reading).toEqual(['a', 'b'])
    expect(closed()).toBe(1)
  })

  test('a reader that is too slow is given what was queued and the end', async () => {
    const { channel, cutOff } = open(undefined, 3)
    for (const text of ['ab', 'cd', 'ef']) channel.push(text)
    expect(await readAll(channel)).toEqual(['ab', 'cd'])
    expect(cutOff()).toBe(1)
  })

  test('channels that share a room: the one that holds most gives up everything, the others nothing', async () => {
    const room = createRoom(10)
    const [fast, slow, other] = [open(undefined, 9, room), open(undefined, 9, room), open(undefined, 9, room)]
    slow.channel.push('slow')
    slow.channel.push('slow')
    other.channel.push('ab')
    const reading = readAll(fast.channel)
    fast.channel.push('cd')
    expect([fast.cutOff(), slow.cutOff(), other.cutOff()]).toEqual([0, 1, 0])
    expect(slow.closed()).toBe(1)
    expect(await readAll(slow.channel)).toEqual([])
    // what was given up and what was read is room again
    await expect.poll(() => open(undefined, 9, room).channel.push('12345678')).toBe(true)
    fast.channel.end()
    expect(await reading).toEqual(['cd'])
    expect(other.cutOff()).toBe(0)
  })

  test('what a reader is being given still takes room', async () => {
    const room = createRoom(10)
    const stuck = open(undefined, 9, room)
    stuck.channel.push('12345678')
    await stuck.channel[Symbol.asyncIterator]().next()
    open(undefined, 9, room).channel.push('abc')
    expect(stuck.cutOff()).toBe(1)
  })

  test('a channel whose signal had ended before closes, although nobody reads it', async () => {
    const { channel, closed } = open(AbortSignal.abort())
    expect(closed()).toBe(0)
    expect(channel.push('a')).toBe(false)
    await Promise.resolve()
    expect(closed()).toBe(1)
  })

  test('an aborted signal ends it at once, read or not', async () => {
    const stop = new AbortController()
    const { channel, closed } = open(stop.signal)
    const reading = readAll(channel)
    stop.abort()
    expect(await reading).toEqual([])
    expect(closed()).toBe(1)
    const unread = open(AbortSignal.abort())
    expect(await readAll(unread.channel)).toEqual([])
    expect(unread.closed()).toBe(1)
  })

  test('a reader that leaves closes it', async () => {
    const { channel, closed } = open()
    channel.push('a')
    for await (const _item of channel) break
    expect(channel.push('b')).toBe(false)
    expect(closed()).toBe(1)
  })
})

test.each([
  [undefined, true],
  ['"7"', true],
  ['"6", "7"', true],
  ['*', true],
  ['"6"', false],
  ['7', false],
  ['W/"7"', false],
])('If-Match %s of version 7', (wanted, isGood) => {
  const check = () => requireMatch({ header: () => wanted } as unknown as RequestFacts, etagOf(7))
  if (isGood) expect(check).not.toThrow()
  else expect(check).toThrow(expect.objectContaining({ status: 409 }))
})
