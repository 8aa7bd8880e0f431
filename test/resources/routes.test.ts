/** Every route of the operator listener says who may call it: one that does not fails here by its name, also where its
 *  types were got around. Who is let through is asked in `test/contract/permissions.database.test.ts`. */
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { ROUTES } from '../../resources/index.ts'

const PUBLIC_OF_OPERATORS = ['log_in_staff', 'verify_staff_second_factor', 'log_out_staff']

const isSafe = ({ method }: (typeof ROUTES)[number]): boolean => method === 'GET'

test.each(ROUTES.filter(({ audience }) => audience === 'operator').map((route) => [route.id, route]))(
  'the route %s of the operator listener has a rule of who may call it',
  (id, route) => {
    const isPublic = PUBLIC_OF_OPERATORS.includes(id)
    expect(route.credentials).toEqual(isPublic ? expect.arrayContaining(['public']) : ['operator'])
    expect(route.staffRole).toEqual(isPublic ? null : expect.any(String))
    // Tokens of the management cluster reach what names a right there: what changes something names one that writes.
    if (route.access !== null && !isSafe(route)) expect(['get', 'list', 'watch']).not.toContain(route.access.verb)
  },
)

test.each(ROUTES.map((route) => [route.id, route]))('the parameters of %s are those in its path', (_id, route) => {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  expect(Object.keys((route.params as z.ZodObject).shape)).toEqual(inPath) // routes declare objects
})
