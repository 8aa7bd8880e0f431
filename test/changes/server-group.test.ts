import { expect, test } from 'vitest'
import { changesBetween, requireUntouched } from '../../changes/kit/judge.ts'
import { serverGroupChanges } from '../../changes/server-group.ts'
import { Region } from '../../resources/catalog/index.ts'
import type { ServerGroupSpec } from '../../resources/server-group/index.ts'
import { withZones } from './world.ts'

const { create, changes } = serverGroupChanges
const SPEC: ServerGroupSpec = { name: 'front', spread: 'host', zone: 'z1', strict: true }
const REGION = { apiVersion: 'svccloud.dev/v1alpha1', kind: 'Region', metadata: { name: 'eu' }, spec: {} }
const WORLD = withZones([Region, REGION])
const subject = <Facts>(facts: Facts, more: Partial<ServerGroupSpec> = {}) => ({
  accountId: 'acct',
  id: 'front',
  facts,
  spec: { ...SPEC, ...more },
})
const made = (more: Partial<ServerGroupSpec>) => () => create.allow?.(subject(undefined, more), WORLD)

test('a group has one change, its name', () => {
  expect(changesBetween(serverGroupChanges, SPEC, { ...SPEC, name: 'back' }).map(({ name }) => name)).toEqual([
    'rename',
  ])
  expect(changesBetween(serverGroupChanges, SPEC, { ...SPEC })).toEqual([])
})

test.each<readonly [string, () => void, string]>([
  ['made in an unknown zone', made({ zone: 'nowhere' }), 'zone: there is no zone nowhere; there are'],
  ['made without a zone', made({ zone: undefined }), 'zone: is required for the spread host'],
  ['made in the region of another zone', made({ region: 'us' }), 'region: is not that of the zone'],
  ['made across no region', made({ spread: 'zone', zone: undefined }), 'region: is required for the spread zone'],
  ['made across an unknown region', made({ spread: 'zone', zone: undefined, region: 'us' }), 'there is no region us'],
  [
    'given a name that cannot be printed',
    () => serverGroupChanges.readable?.({ ...SPEC, name: 'a\u0007' }),
    'name: must be printable',
  ],
  [
    'moved to another zone',
    () => requireUntouched(serverGroupChanges, SPEC, { ...SPEC, zone: 'bare' }),
    'zone: cannot be changed',
  ],
  [
    'renamed while it is deleted',
    () => changes[0]?.allow?.(subject({ isDeleting: true }), WORLD),
    'The group is being deleted.',
  ],
])('a server group is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test.each<readonly [string, () => void]>([
  ['made in a zone', made({})],
  ['made across the zones of a region', made({ spread: 'zone', zone: undefined, region: 'eu' })],
  ['made across the zones of a region that a zone names', made({ spread: 'zone' })],
  ['renamed', () => changes[0]?.allow?.(subject({ isDeleting: false }), WORLD)],
])('a server group may be %s', (_what, work) => {
  expect(work).not.toThrow()
})
