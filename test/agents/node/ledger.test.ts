import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { tryLockFolder } from '../../../agents/node/folder-lock.ts'
import { type BytesEntry, ledgerInMemory, LedgerInUse, openLedger, type Ledger } from '../../../agents/node/ledger.ts'

let folder: string
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'svccloud-ledger-'))))
afterEach(() => rm(folder, { recursive: true }))

const ENTRY = {
  uid: 'u',
  generation: 3,
  incarnation: 2,
  startedAt: '2030-01-01T00:00:00.000Z',
  ended: { at: '2030-01-01T00:00:01.000Z', reason: 'crashed' as const },
}

describe.each<[string, () => Ledger]>([
  ['on disk', () => openLedger(join(folder, 'ledger.db'))],
  ['in memory', ledgerInMemory],
])('a ledger %s', (_kind, open) => {
  it('keeps, replaces and forgets entries, and what became of bytes', () => {
    const ledger = open()
    expect(ledger.get('a')).toBeUndefined()
    ledger.put('a', ENTRY)
    ledger.put('b', { uid: 'v', generation: 1, incarnation: 0 })
    ledger.put('a', { ...ENTRY, incarnation: 3 })
    expect(ledger.get('a')).toEqual({ ...ENTRY, incarnation: 3 })
    ledger.remove('a')
    expect([ledger.get('a'), ledger.get('b')?.uid, ledger.bytesOf('volume', 'a')]).toEqual([undefined, 'v', undefined])
    const made: BytesEntry = {
      uid: 'u',
      state: 'made',
      madeFor: 'u',
      at: '2026-01-01T00:00:00Z',
      snapshots: ['s'],
    }
    ledger.putBytes('volume', 'a', { ...made, state: 'making' })
    ledger.putBytes('volume', 'a', made)
    expect([ledger.bytesOf('volume', 'a'), ledger.bytesOf('image', 'a')]).toEqual([made, undefined])
    const removed: BytesEntry = { uid: 'u', state: 'removed', at: '2026-01-01T00:00:00.000Z' }
    ledger.putBytes('guest', 'u', removed)
    ledger.pruneRemoved(new Date('2026-01-01T00:00:00Z'))
    expect(ledger.bytesOf('guest', 'u')).toEqual(removed)
    ledger.pruneRemoved(new Date('2026-01-01T00:00:01Z'))
    expect([ledger.bytesOf('guest', 'u'), ledger.bytesOf('volume', 'a')]).toEqual([undefined, made])
    ledger.close()
  })
})

it('a ledger on disk is still there after its agent, and has one agent at a time', () => {
  const file = join(folder, 'ledger.db')
  const ledger = openLedger(file)
  ledger.put('a', ENTRY)
  expect(() => openLedger(file)).toThrow(LedgerInUse)
  ledger.close()
  const again = openLedger(file)
  expect(again.get('a')).toEqual(ENTRY)
  again.close()
})

it('a folder has one holder at a time', () => {
  const unlock = tryLockFolder(folder)
  expect(unlock).toBeDefined()
  expect(tryLockFolder(folder)).toBeUndefined()
  unlock?.()
  tryLockFolder(folder)?.()
})
