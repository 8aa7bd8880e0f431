/** Every route that exists is the contract's, and what customers have once had stays. `routes.json` is the contract's
 *  list; `built.txt` lists what is built: UPDATE=1 adds to it, nothing takes away from it. `rules.txt` has who may call
 *  each, and what it answers. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { ROUTES } from '../../resources/index.ts'

interface ContractRoute {
  readonly method: string
  readonly path: string
  readonly operation_id: string
  readonly audience: string
  readonly source: string
}

const contract = JSON.parse(await readFile(new URL('routes.json', import.meta.url), 'utf8')) as ContractRoute[]
const builtFile = new URL('built.txt', import.meta.url)
const lineOf = (route: { id: string; method: string; path: string; permission: string | null }) =>
  `${route.id} ${route.method} ${route.path} ${route.permission ?? '-'}`
const lines = ROUTES.map(lineOf).sort()

test('every route is one of the contract: same operationId, method, path and audience', () => {
  const audienceOf = (audience: string) => (audience === 'customer' ? 'customer' : 'operator')
  const known = new Map(contract.map((route) => [route.operation_id, route]))
  for (const route of ROUTES) {
    const wanted = known.get(route.id)
    expect
      .soft(wanted && { method: wanted.method, path: wanted.path, audience: audienceOf(wanted.audience) }, route.id)
      .toEqual({ method: route.method, path: route.path, audience: route.audience })
  }
})

test('no operationId and no method of a path is given twice', () => {
  expect(new Set(ROUTES.map((route) => route.id)).size).toBe(ROUTES.length)
  expect(new Set(ROUTES.map((route) => `${route.method} ${route.path.replaceAll(/\{\w+\}/g, '{}')}`)).size).toBe(
    ROUTES.length,
  )
})

test('what is built stays built, with its method, path and permission', async () => {
  const kept = (await readFile(builtFile, 'utf8')).trim().split('\n')
  expect(lines, 'a route that customers had is gone or different').toEqual(expect.arrayContaining(kept))
  if (environment()['UPDATE'] === '1') await writeFile(builtFile, `${lines.join('\n')}\n`)
  else expect(lines, 'a new route: run with UPDATE=1').toEqual(kept)
})

/** Written out: what is let through without a permission or a staff role is decided here, and nowhere by forgetting. */
const UNGUARDED = [
  'customer accept_invitation public',
  'customer confirm_email_verification public',
  'customer confirm_password_reset public',
  'customer end_impersonation session',
  'customer finish_identity_provider_login public',
  'customer finish_identity_provider_login_at_provider public',
  'customer finish_login_second_factor_setup public',
  'customer get_account token,session',
  'customer get_current_user session',
  'customer get_identity_provider_status public',
  'customer log_in public',
  'customer log_out session,public',
  'customer look_up_invitation public',
  'customer receive_payment_event public',
  'customer redeem_support_handoff public',
  'customer request_password_reset public',
  'customer revoke_own_token token',
  'customer send_mcp_message token',
  'customer sign_up public',
  'customer start_identity_provider_login public',
  'customer start_identity_provider_signup public',
  'customer start_login_second_factor_setup public',
  'customer verify_login_second_factor public',
  'operator log_in_staff public',
  'operator log_out_staff operator,public',
  'operator verify_staff_second_factor public',
]

test('only these routes ask for neither a permission nor a staff role', () => {
  const unguarded = ROUTES.filter((route) => route.permission === null && route.staffRole === null)
  expect(unguarded.map((route) => `${route.audience} ${route.id} ${route.credentials.join()}`).sort()).toEqual(
    UNGUARDED,
  )
})

/** What groups and forms of routes decide (`resources/kit/verbs.ts`): a default that changes shows here, route by
 *  route. */
const rulesOf = (route: (typeof ROUTES)[number]): string =>
  [
    route.id,
    `${route.audience}: ${[route.permission, route.staffRole].filter((rule) => rule !== null).join() || '-'}`,
    `by ${route.credentials.join()}`,
    route.access === null ? '' : `or ${Object.values(route.access).join(' ')}`,
    `audit ${route.audit ?? '-'}`,
    route.starts.length === 0 ? '' : `starts ${route.starts.join()}`,
    `answers ${Object.keys(route.answers).join()}`,
    `refuses ${route.refuses.toSorted().join() || '-'}`,
    ...(
      ['requiresVerifiedEmail', 'requiresStanding', 'isDestructive', 'isCredentialRead', 'isRefusedToSupport'] as const
    ).filter((flag) => route[flag]),
    route.clusterScopes.length === 0 ? '' : `clusters ${route.clusterScopes.join()}`,
    route.rates.length === 0 ? '' : `rates ${route.rates.map(({ name, by }) => `${name}/${by}`).join()}`,
    `budget ${route.budget}`,
  ]
    .filter((part) => part !== '')
    .join('; ')

test('who may call a route, what is recorded and what it answers is as it was reviewed', async () => {
  const file = new URL('rules.txt', import.meta.url)
  const text = `${ROUTES.map(rulesOf).toSorted().join('\n')}\n`
  if (environment()['UPDATE'] === '1') await writeFile(file, text)
  expect(text, 'rules of routes have changed: read the difference, then run with UPDATE=1').toBe(
    await readFile(file, 'utf8'),
  )
})
