/** Views by their names, and what does not compile: each `@ts-expect-error` fails the type check once its line is
 *  accepted. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { viewOf } from '../../resources/kit/view.ts'

const Thing = z.strictObject({
  id: z.string(),
  public_ipv4: z.string().nullable(),
  tags: z.array(z.string()),
  size: z.int(),
  note: z.string().optional(),
  ended_at: z.iso.datetime().nullable(),
  reason: z.string().nullable().optional(),
})
interface Row {
  readonly id: string
  readonly publicIpv4?: string
  readonly tags: readonly string[]
  readonly size: string
  readonly endedAt: Date | null
  readonly reason?: string | null
  readonly secret: string
}
const row: Row = { id: 'one', tags: ['a'], size: '7', endedAt: null, secret: 'never shown' }

test('fields are found under their name in camelCase; what is absent is null where the view may be that', () => {
  expect(viewOf(Thing, row, { size: 7 })).toStrictEqual({
    id: 'one',
    public_ipv4: null,
    tags: ['a'],
    size: 7,
    ended_at: null,
  })
})

test('what may be left out is left out, unless the source says that it is null', () => {
  expect(viewOf(Thing, row, { size: 7 })).not.toHaveProperty('reason')
  expect(viewOf(Thing, { ...row, reason: null }, { size: 7 })).toHaveProperty('reason', null)
})

test('moments are shown as RFC 3339, and what is named wins over what is found', () => {
  const ended = { ...row, publicIpv4: '192.0.2.1', endedAt: new Date('2026-01-02T03:04:05Z') }
  expect(viewOf(Thing, ended, { size: 7, id: 'two', note: 'ended' })).toStrictEqual({
    id: 'two',
    public_ipv4: '192.0.2.1',
    tags: ['a'],
    size: 7,
    note: 'ended',
    ended_at: '2026-01-02T03:04:05.000Z',
  })
})

test('what the source has not, or has in another type, must be named', () => {
  // @ts-expect-error: the size of the row is a text
  viewOf(Thing, row, {})
  const { tags: _, ...untagged } = row
  // @ts-expect-error: nobody says which tags it has
  viewOf(Thing, untagged, { size: 7 })
  // @ts-expect-error: a field that the view may leave out is something else in the source
  viewOf(Thing, { ...row, note: 7 }, { size: 7 })
  // @ts-expect-error: the view has no such field
  viewOf(Thing, row, { size: 7, secret: 'shown' })
})
