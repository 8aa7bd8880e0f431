/** What components show, without a browser: what is read, what could not be, and what is wrong. */
import { answer, useOutside } from './outside.ts'
import { htmlOf } from './components.ts'
import { createElement, type ReactElement } from 'react'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cache } from '../../portal/api/cache.ts'
import type { OperationId } from '../../portal/api/operations.ts'
import { openPortal } from '../../portal/api/portal.ts'
import { Refusal } from '../../portal/api/refusal.ts'
import { customerPortal } from '../../portal/customer.ts'
import { operatorPortal } from '../../portal/operator/portal.ts'
import { loadOperatorTexts } from '../../portal/operator/texts/index.ts'
import { loadTexts } from '../../portal/texts/index.ts'

const outside = useOutside()

beforeAll(async () => {
  openPortal(customerPortal)
  await loadTexts(loadOperatorTexts)
})
beforeEach(() => cache.clear())

const nothing = (): void => undefined
const refusal = (headers: Readonly<Record<string, string>> = {}): Refusal =>
  new Refusal('list_servers', answer(503, {}, headers), { title: 'Unavailable', detail: 'Not now.' })

describe('fields', () => {
  it('say what is wrong with a switch and with boxes', async () => {
    const { Switch } = await import('../../portal/ui/field.tsx')
    const html = htmlOf(createElement(Switch, { label: 'On', isOn: false, onChange: nothing, wrong: 'Not now' }))
    expect(html).toMatch(/data-invalid="true".*Not now/)
    const { Fields } = await import('../../portal/nouns/fields.tsx')
    const form = {
      values: {},
      errors: { roles: 'Choose one', nat_enabled: 'Not here' },
      set: nothing,
      setErrors: nothing,
      faultCount: 0,
      isTouched: false,
    }
    const body = {
      properties: {
        roles: { type: 'array', items: { enum: ['bastion'] } },
        nat_enabled: { type: 'boolean' },
      },
      flags: {},
    }
    const fields = [{ name: 'roles' }, { name: 'nat_enabled' }]
    const both = htmlOf(createElement(Fields, { fields, body, form }))
    expect(both).toMatch(/data-invalid="true".*Choose one/)
    expect(both).toMatch(/data-invalid="true".*Not here/)
  })
})

describe('a choice of a list that has more', () => {
  const option = (id: string) => ({ id, name: `name of ${id}` })

  it('is searched by the service, and keeps what is chosen', async () => {
    const { Fields, withChosen } = await import('../../portal/nouns/fields.tsx')
    const htmlWith = (hasMore: boolean): string => {
      const field = { name: 'server_id', useOptions: () => ({ options: [option('a')], hasMore }) }
      const form = { values: {}, errors: {}, set: nothing, setErrors: nothing, faultCount: 0, isTouched: false }
      return htmlOf(createElement(Fields, { fields: [field], body: { flags: {} }, form }))
    }
    expect(htmlWith(true)).toContain('Search: Server')
    expect(htmlWith(false)).not.toContain('Search: Server')
    const known = new Map([['b', option('b')]])
    expect(withChosen([option('a')], known, 'b')).toEqual([option('b'), option('a')])
    expect(withChosen([option('a')], known, ['a', 'x'])).toEqual([option('a')])
  })
})

describe('a table', () => {
  it('says of which row a button is', async () => {
    const { Table } = await import('../../portal/ui/table.tsx')
    const { Button } = await import('../../portal/ui/button.tsx')
    const html = htmlOf(
      createElement(Table<{ readonly id: string }>, {
        label: 'Members',
        items: [{ id: 'ada@example.com' }],
        columns: [
          { id: 'email', name: 'Email', cell: ({ id }) => id },
          { id: 'role', name: 'Role', cell: () => createElement(Button, { children: 'Member' }) },
        ],
      }),
    )
    const [, id = ''] = /<button[^>]*aria-describedby="([^"]+)"/.exec(html) ?? []
    expect(html).toMatch(new RegExp(`<td [^>]*id="${id}"[^>]*>ada@example.com</td>`))
  })
})

describe('notes and refusals', () => {
  it('reach those who do not see them', async () => {
    const { Note } = await import('../../portal/ui/state.tsx')
    expect(htmlOf(createElement(Note, { children: 'Changed by others' }))).toMatch(/role="status".*Changed by others/)
    const { ProblemView } = await import('../../portal/ui/problem.tsx')
    expect(htmlOf(createElement(ProblemView, { refusal: refusal({ 'retry-after': '7' }) }))).toMatch(
      /role="alert".*Try again in 7 seconds\./,
    )
    expect(htmlOf(createElement(ProblemView, { refusal: refusal() }))).not.toContain('Try again in')
  })
})

describe('secrets that are shown once', () => {
  const secrets = (secret: string) => ({ values: { secret } })
  const html = async (props: object): Promise<string> => {
    // a dialog is shown in a document alone: what it holds is looked at
    const { OnceContent } = await import('../../portal/nouns/once.tsx')
    return htmlOf(createElement(OnceContent, { onClose: nothing, ...props } as never) as ReactElement)
  }

  it('are those of every item', async () => {
    const shown = [
      { id: 'a', name: 'first', secrets: secrets('whsec_a') },
      { id: 'b', name: 'second', secrets: secrets('whsec_b') },
    ]
    expect(await html({ shown })).toMatch(/first.*whsec_a.*second.*whsec_b/)
  })

  it('say that they were lost, and how there is another one', async () => {
    const shown = [{ id: 'a', name: 'hook', secrets: undefined }]
    const lost = await html({ shown, rotate: 'rotate_webhook_secret' })
    expect(lost).toMatch(/did not arrive.*Rotate secret/)
    expect(await html({ shown })).toContain('Delete this one and create another.')
    expect(await html({ shown, isReadable: true })).toContain('You can read it')
  })
})

describe('a count', () => {
  it('of which only the first page is known says so', async () => {
    openPortal(operatorPortal)
    const { register } = await import('../../portal/nouns/registry.ts')
    register((await import('../../portal/operator/nouns.ts')).OPERATOR_NOUNS)
    const { Waiting } = await import('../../portal/operator/pages/overview.tsx')
    const staff = { id: 's', email: 's@example.com', name: 'S', role: 'operations' }
    cache.setQueryData(['get_current_staff', {}], { staff, csrf_token: '' })
    const pageOf = (cursor: string | null) => ({
      pages: [
        { items: Array.from({ length: 100 }, (_, at) => ({ id: String(at), state: 'ready' })), next_cursor: cursor },
      ],
      pageParams: [''],
    })
    cache.setQueryData(['list_nodes', {}], pageOf('more'))
    cache.setQueryData(['list_quota_requests_as_staff', { state: 'open' }], pageOf('more'))
    cache.setQueryData(['list_private_cloud_requests_as_staff', { state: 'open' }], pageOf(null))
    const html = htmlOf(createElement(Waiting))
    expect(html).toMatch(/100\+.*100\+ of 100\+ ready.*100\+/)
    expect(html.match(/100\+/g)).toHaveLength(4)
  })
})

/** What reads something for a page. */
const VIEWS: readonly (readonly [string, typeof customerPortal, OperationId, () => Promise<ReactElement>])[] = [
  [
    'transfer',
    customerPortal,
    'get_network_transfer',
    async () => createElement((await import('../../portal/pages/settings/payments.tsx')).Transfer),
  ],
  [
    'log of what was billed',
    customerPortal,
    'list_billing_log',
    async () => createElement((await import('../../portal/pages/settings/payments.tsx')).Log),
  ],
  [
    'overview of customers',
    customerPortal,
    'get_overview',
    async () => createElement((await import('../../portal/pages/dashboard.tsx')).Overviews),
  ],
  [
    'chain of the audit log',
    customerPortal,
    'get_audit_integrity',
    async () => createElement((await import('../../portal/pages/audit.tsx')).Chain),
  ],
  [
    'capacity',
    operatorPortal,
    'get_capacity',
    async () => createElement((await import('../../portal/operator/pages/overview.tsx')).Capacity),
  ],
  [
    'control plane',
    operatorPortal,
    'get_control_plane',
    async () => createElement((await import('../../portal/operator/pages/overview.tsx')).Plane),
  ],
  [
    'zones with policies',
    operatorPortal,
    'get_capacity',
    async () => createElement((await import('../../portal/operator/pages/storage-policies.tsx')).StoragePoliciesPage),
  ],
  [
    'who waits',
    operatorPortal,
    'list_nodes',
    async () => createElement((await import('../../portal/operator/pages/overview.tsx')).Waiting),
  ],
]

describe('what is read', () => {
  it.each(VIEWS)('%s: shows that it is, and why it could not be', async (_name, portal, operation, view) => {
    openPortal(portal)
    outside.serve = () => answer(503, {})
    const staff = { id: 's', email: 's@example.com', name: 'S', role: 'operations' }
    cache.setQueryData(['get_current_staff', {}], { staff, csrf_token: '' })
    const element = await view()
    expect(htmlOf(element)).toContain('aria-busy="true"')
    // every query of the operation has failed
    const options = cache.getDefaultOptions()
    cache.setDefaultOptions({ ...options, queries: { ...options.queries, retryOnMount: false } })
    for (const query of cache.getQueryCache().findAll({ queryKey: [operation] }))
      query.setState({ status: 'error', error: refusal(), fetchStatus: 'idle' })
    const html = htmlOf(element)
    cache.setDefaultOptions(options)
    expect(html).toMatch(/role="alert".*Not now\./)
  })
})
