/** What a route gets from its group and from its form, and what does not compile: each `@ts-expect-error` fails the
 *  type check once its line is accepted. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { PageQuery } from '../../resources/kit/shapes.ts'
import { routesUnder, verbsOf } from '../../resources/kit/verbs.ts'

const Thing = z.strictObject({ size: z.int() })
const summary = 'Do something with a thing'
const things = verbsOf({ path: '/v1/things', noun: 'thing', view: Thing })

test('a verb of a noun says where it is, who may call it, what it answers and what is recorded', () => {
  const list = things.list('list_things', { summary })
  expect(list).toMatchObject({ id: 'list_things', method: 'GET', path: '/v1/things', permission: 'read' })
  expect([list.query, list.refuses, list.audit]).toEqual([PageQuery, [400], null])
  expect(things.listWhole('list_things', { summary }).refuses).toEqual([])

  const read = things.read('get_thing', { summary })
  expect(read).toMatchObject({ method: 'GET', path: '/v1/things/{id}', permission: 'read', refuses: [404] })
  expect(read.answers[200]?.parse({ thing: { size: 1 } })).toEqual({ thing: { size: 1 } })

  const create = things.create('create_thing', { summary, body: Thing, needs: 'standing' })
  expect(create).toMatchObject({ method: 'POST', permission: 'operate', audit: 'thing.create', refuses: [400, 409] })
  expect([create.requiresVerifiedEmail, create.requiresStanding]).toEqual([true, true])
  expect(Object.keys(create.answers)).toEqual(['201'])
  const started = things.create('create_thing', { summary, starts: ['network.sync'], needs: 'verified' })
  expect(Object.keys(started.answers)).toEqual(['202'])
  expect([started.audit, started.requiresStanding]).toEqual(['thing.create', false])

  const change = things.change('update_thing', { summary, body: Thing })
  expect(change).toMatchObject({ method: 'PATCH', audit: 'thing.update', refuses: [400, 404, 409] })
  expect(things.remove('delete_thing', { summary })).toMatchObject({
    method: 'DELETE',
    audit: 'thing.delete',
    isDestructive: true,
    answers: { 204: null },
    refuses: [404, 409],
  })
})

test('a route that starts an operation answers that, and is recorded under its kind', () => {
  const move = things.post('move_thing', '/{id}/move', { summary, starts: ['server.move'] })
  expect(move).toMatchObject({ path: '/v1/things/{id}/move', audit: 'server.move', permission: 'operate' })
  expect(Object.keys(move.answers)).toEqual(['202'])
  const named = things.post('move_thing', '/{id}/move', { summary, starts: ['server.move'], audit: 'thing.move' })
  expect(named.audit).toBe('thing.move')
})

test('what a route says itself wins over its group, and its group over what follows from its form', () => {
  const logins = routesUnder({ path: '/v1/logins', credentials: ['public'], permission: null, refuses: [503] })
  const plain = logins.post('log_in', '', { summary, answers: { 204: null } })
  expect([plain.permission, plain.credentials, plain.refuses]).toEqual([null, ['public'], [503]])
  const own = logins.post('log_in', '', { summary, answers: { 204: null }, permission: 'self', refuses: [400] })
  expect([own.permission, own.refuses]).toEqual(['self', [400]])
})

test('operators need a role of the staff, or the right that the route means in the management cluster', () => {
  const access = { resource: 'things', scope: 'cluster' } as const
  const group = { path: '/v1/operator/things', noun: 'thing', view: Thing, access } as const
  const nodes = verbsOf({ ...group, staff: { reads: 'any', changes: 'operations' } })
  const rules = [
    nodes.list('list_things', { summary }),
    nodes.read('get_thing', { summary }),
    nodes.create('create_thing', { summary }),
    nodes.change('update_thing', { summary, body: Thing }),
    nodes.remove('delete_thing', { summary }),
    nodes.post('drain_thing', '/{id}/drain', { summary, answers: { 204: null }, staffRole: 'support' }),
  ].map((route) => [route.audience, route.credentials.join(), route.permission, route.staffRole, route.access?.verb])
  expect(rules).toEqual([
    ['operator', 'operator', null, 'any', 'list'],
    ['operator', 'operator', null, 'any', 'get'],
    ['operator', 'operator', null, 'operations', 'create'],
    ['operator', 'operator', null, 'operations', 'update'],
    ['operator', 'operator', null, 'operations', 'delete'],
    ['operator', 'operator', null, 'support', 'update'],
  ])
})

test('what nobody has decided does not compile', () => {
  // @ts-expect-error: neither an answer nor an operation
  things.post('move_thing', '/{id}/move', { summary })
  // @ts-expect-error: no permission, and no credentials that are enough
  routesUnder({ path: '/v1/things', permission: null })
  // @ts-expect-error: a route cannot drop the permission of its group
  things.read('get_thing', { summary, permission: null })
  // @ts-expect-error: customers have no role of the staff
  things.read('get_thing', { summary, staffRole: 'any' })
  const operated = routesUnder({ path: '/v1/operator/things', staff: 'any' })
  // @ts-expect-error: operators have no permission of an account
  operated.get('get', '', { summary, permission: 'read', answers: { 200: Thing } })
  // @ts-expect-error: a group has no such member
  routesUnder({ path: '/v1/things', permision: 'billing.read' })
  // @ts-expect-error: a noun has no such member
  verbsOf({ path: '/v1/things', noun: 'thing', view: Thing, permision: 'billing.read' })
  // @ts-expect-error: a route has no such member
  things.read('get_thing', { summary, permision: 'billing.read' })
  // @ts-expect-error: a route of a group has no such member
  operated.get('get', '', { summary, permision: 'read', answers: { 200: Thing } })
  // @ts-expect-error: the example is not one of the body
  things.create('create_thing', { summary, body: Thing, example: { size: 'large' } })
})
