import { expect, test } from 'vitest'
import { isAdministrator, isStale, readOrganisations, roleOfPlatform } from '../../../domain/account/organisations.ts'

const ID = '00000000-0000-4000-8000-00000000000a'
const stated = (more: object = {}) => ({ id: ID, name: 'Acme', role: 'owner', ...more })

test.each([[undefined], [null], ['acme'], [{ 0: stated() }]])('%j is no list of organisations', (claim) =>
  expect(readOrganisations(claim)).toBeUndefined(),
)

test.each([
  ['an item that is no object', 'acme'],
  ['null', null],
  ['one without id', { name: 'Acme', role: 'owner' }],
  ['one without name', { id: ID, role: 'owner' }],
  ['one without role', { id: ID, name: 'Acme' }],
  ['one whose id is no text', stated({ id: 7 })],
  ['one whose id is no UUID', stated({ id: 'acme' })],
  ['one whose name is no text', stated({ name: 7 })],
  ['one whose role is no text', stated({ role: ['owner'] })],
])('%s is left out, and the others stay', (_what, item) =>
  expect(readOrganisations([item, stated()])).toEqual([{ id: ID, name: 'Acme', platformRole: 'owner' }]),
)

test('ids are in small letters, and of two statements of one organisation the later counts', () => {
  expect(readOrganisations([stated(), stated({ id: ID.toUpperCase(), role: 'guest' })])).toEqual([
    { id: ID, name: 'Acme', platformRole: 'guest' },
  ])
})

test('texts and lists are bounded', () => {
  const idOf = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
  const many = Array.from({ length: 201 }, (_, index) => stated({ id: idOf(index) }))
  expect(readOrganisations(many)?.map(({ id }) => id)).toEqual(many.slice(0, 200).map(({ id }) => id))
  const [long] = readOrganisations([stated({ name: 'n'.repeat(201), role: 'r'.repeat(64) })]) ?? []
  expect([long?.name.length, long?.platformRole.length]).toEqual([200, 63])
})

test.each([
  ['owner', 'admin'],
  ['admin', 'admin'],
  ['viewer', 'viewer'],
  ['guest', 'viewer'],
  ['developer', 'member'],
  ['', 'member'],
])('the role %j of the platform opens %s', (platformRole, role) => {
  expect(roleOfPlatform(platformRole)).toBe(role)
  expect(isAdministrator(platformRole)).toBe(role === 'admin')
})

test('a statement is fresh for an hour', () => {
  const confirmedAt = new Date('2026-01-01T12:00:00.000Z')
  expect(isStale(confirmedAt, new Date('2026-01-01T13:00:00.000Z'))).toBe(false)
  expect(isStale(confirmedAt, new Date('2026-01-01T13:00:00.001Z'))).toBe(true)
})
