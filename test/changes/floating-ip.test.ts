import { describe, expect, test } from 'vitest'
import { floatingIpChanges } from '../../changes/floating-ip.ts'
import { changesBetween, requireUntouched } from '../../changes/kit/judge.ts'
import type { FloatingIpSpec } from '../../resources/floating-ip/index.ts'
import { ZONES } from './world.ts'

const FREE = { id: 'ip', isAssigned: false, isDeleting: false, activeOperation: undefined }
const spec = (more: Partial<FloatingIpSpec> = {}): FloatingIpSpec => ({ zone: 'z1', ...more })
const subject = <Facts>(facts: Facts, more: Partial<FloatingIpSpec> = {}) => ({
  accountId: 'acct',
  id: 'ip',
  facts,
  spec: spec(more),
})
const said = (work: () => void): string => {
  try {
    work()
    return ''
  } catch (error) {
    return String(error)
  }
}

describe('the change between two specs', () => {
  test.each<readonly [string, Partial<FloatingIpSpec>, Partial<FloatingIpSpec>, readonly string[]]>([
    ['nothing', { serverId: 'a' }, { serverId: 'a', target: 'public' }, []],
    ['a first server', {}, { serverId: 'a' }, ['assign']],
    ['another server', { serverId: 'a' }, { serverId: 'b' }, ['assign']],
    ['another target', { serverId: 'a' }, { serverId: 'a', target: 'private:back' }, ['assign']],
    ['no server', { serverId: 'a' }, {}, ['unassign']],
  ])('is, with %s', (_what, before, after, names) => {
    expect(changesBetween(floatingIpChanges, spec(before), spec(after)).map(({ name }) => name)).toEqual(names)
  })
})

test.each<readonly [string, () => void, string]>([
  [
    'allocated in an unknown zone',
    () => floatingIpChanges.create.allow?.(subject(undefined, { zone: 'x' }), ZONES),
    'zone: there is no',
  ],
  [
    'allocated in a closed zone',
    () => floatingIpChanges.create.allow?.(subject(undefined, { zone: 'closed' }), ZONES),
    'takes nothing new',
  ],
  [
    'allocated in a zone without networks',
    () => floatingIpChanges.create.allow?.(subject(undefined, { zone: 'bare' }), ZONES),
    'no host answers',
  ],
  [
    'moved to another zone',
    () => requireUntouched(floatingIpChanges, spec(), spec({ zone: 'closed' })),
    'zone: cannot be changed',
  ],
  [
    'given an address',
    () => requireUntouched(floatingIpChanges, spec(), spec({ address: '192.0.2.1' })),
    'spec.address is written by',
  ],
  [
    'made with an address',
    () => requireUntouched(floatingIpChanges, undefined, spec({ address: '192.0.2.1' })),
    'spec.address is written by',
  ],
  [
    'given a target and no server',
    () => floatingIpChanges.readable?.(spec({ target: 'public' })),
    'target: cannot be given without',
  ],
  [
    'released while it is assigned',
    () => floatingIpChanges.remove.allow?.(subject({ ...FREE, isAssigned: true }), ZONES),
    'Unassign it first',
  ],
  [
    'assigned while it changes',
    () => floatingIpChanges.changes[0]?.allow?.(subject({ ...FREE, activeOperation: { id: 'op' } }), ZONES),
    'Another operation runs',
  ],
  [
    'assigned while it is released',
    () => floatingIpChanges.changes[1]?.allow?.(subject({ ...FREE, isDeleting: true }), ZONES),
    'is being released',
  ],
])('a floating IP is never %s', (_what, work, sentence) => {
  expect(said(work)).toContain(sentence)
})

test.each<readonly [string, () => void]>([
  ['allocated', () => floatingIpChanges.create.allow?.(subject(undefined), ZONES)],
  ['assigned', () => floatingIpChanges.changes[0]?.allow?.(subject(FREE), ZONES)],
  ['released', () => floatingIpChanges.remove.allow?.(subject(FREE), ZONES)],
])('a floating IP may be %s', (_what, work) => {
  expect(said(work)).toBe('')
})
