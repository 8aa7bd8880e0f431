/** Every route of the operator listener says who may call it: one that does not fails here by its name, also where its
 *  types were got around. Who is let through is asked in `test/contract/permissions.database.test.ts`. */
import { expect, test } from 'vitest'
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
