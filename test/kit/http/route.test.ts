/** Routes that say not who may call do not compile: each `@ts-expect-error` fails the type check once its line is
 *  accepted. */
import { expect, test } from 'vitest'
import { route } from '../../../kit/http/route.ts'

const read = { id: 'read', method: 'GET', path: '/v1/things', summary: '', answers: { 204: null } } as const
const operators = { ...read, audience: 'operator', credentials: ['operator'], permission: null } as const

test('a route of the operator listener needs a staff role, with any other rule for tokens', () => {
  // @ts-expect-error: nothing decides which operators may call
  route(operators)
  // @ts-expect-error: nothing decides which of the staff may call
  route({ ...operators, access: { verb: 'list', resource: 'things', scope: 'cluster' } as const })
  // @ts-expect-error: nobody of the staff is named
  route({ ...operators, staffRole: null })
  const ofTheStaff = { ...operators, staffRole: 'any' } as const
  expect(route(ofTheStaff)).toMatchObject({ staffRole: 'any', access: null })
  const signIn = { ...read, audience: 'operator', credentials: ['public'], permission: null } as const
  expect(route(signIn).staffRole).toBeNull()
})

test('a route for customers needs a permission, or says which credentials are enough', () => {
  // @ts-expect-error: the permission is missing
  route(read)
  // @ts-expect-error: every credential would be enough
  route({ ...read, permission: null })
  // @ts-expect-error: what operators hold is nothing here
  route({ ...read, credentials: ['operator'], permission: null })
  expect(route({ ...read, permission: 'read' }).credentials).toEqual(['token', 'session'])
  expect(route({ ...read, permission: null, credentials: ['public'] }).permission).toBeNull()
})
