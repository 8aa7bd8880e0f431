/** What components show, without a browser: what is read, what could not be, and what is wrong. */
import { answer, useOutside } from './outside.ts'
import { htmlOf } from './components.ts'
import { runHook } from './hooks.ts'
import type { RouterHistory } from '@tanstack/react-router'
import { createElement, type ReactElement, useState } from 'react'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { cache, keyOf } from '../../portal/api/cache.ts'
import type { OperationId } from '../../portal/api/operations.ts'
import { openPortal } from '../../portal/api/portal.ts'
import { Refusal } from '../../portal/api/refusal.ts'
import { customerPortal } from '../../portal/customer.ts'
import { operatorPortal } from '../../portal/operator/portal.ts'
import { loadOperatorTexts } from '../../portal/operator/texts/index.ts'
import type { Noun } from '../../portal/nouns/noun.ts'
import { loadTexts, nounTexts } from '../../portal/texts/index.ts'
import { loadSettingsTexts } from '../../portal/texts/settings.ts'
import { loadStorageTexts } from '../../portal/texts/object-storage.ts'
import type { ConfirmProps } from '../../portal/ui/dialog.tsx'

type NavigationBlocker = Parameters<RouterHistory['block']>[0]

const outside = useOutside()

beforeAll(async () => {
  openPortal(customerPortal)
  await loadTexts(loadOperatorTexts)
  await loadSettingsTexts()
})
beforeEach(() => cache.clear())

const nothing = (): void => undefined
const WEBHOOK = { item: { id: 'w' } as never }
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

describe('a question whose answer is under way', () => {
  it('stays open, so that the answer is seen', async () => {
    const { Confirm } = await import('../../portal/ui/dialog.tsx')
    // a dialog is shown in a document alone: what it is made of is looked at
    const partsOf = (isBusy: boolean) => {
      const made: ReactElement<{ readonly isFirm: boolean; readonly children: ReactElement }>[] = []
      const props = { title: 'Stop web', button: 'Stop', isBusy, onConfirm: nothing, onClose: nothing }
      htmlOf(
        createElement(() => {
          made.push(Confirm(props) as (typeof made)[number])
          return null
        }),
      )
      const [{ props: found } = { props: undefined }] = made
      return { isFirm: found?.isFirm, html: htmlOf(found?.children ?? createElement('i')) }
    }
    const [busy, idle] = [partsOf(true), partsOf(false)]
    expect([busy.isFirm, idle.isFirm]).toEqual([true, false])
    expect(busy.html).toMatch(/aria-disabled="true"[^>]*>Cancel/)
    expect(idle.html).not.toMatch(/aria-disabled="true"[^>]*>Cancel/)
  })
})

describe('the charts of a server', () => {
  it('show cores in use, whatever its plan is now', async () => {
    const { chartsOf } = await import('../../portal/nouns/server/metrics.tsx')
    const point = { at: '2026-01-01T00:00:00Z', cpu_seconds: 90, memory_used_bytes: null }
    const [processor] = chartsOf({ points: [point], step_seconds: 60 } as never, 1)
    expect(processor?.series[0]).toEqual({ name: 'cores in use', values: [1.5] })
    expect(processor?.format(1.5)).toBe('1.5')
  })
})

describe('the end of a table', () => {
  it('is reached once, however often the table is rendered', async () => {
    const { useAtEnd } = await import('../../portal/ui/rows-in-sight.tsx')
    const reached: string[] = []
    let [end, count, name] = [250, 300, 'first']
    const run = await runHook(() => {
      const [, renderAgain] = useState({})
      const now = name
      useAtEnd(end, count, () => reached.push(now))
      return () => renderAgain({})
    })
    const render = (): Promise<void> => run.act((renderAgain) => renderAgain())
    expect(reached).toEqual([])
    end = 290
    await render()
    // as when the request was refused
    name = 'second'
    await render()
    await render()
    expect(reached).toEqual(['first'])
    count = 305
    await render()
    expect(reached).toEqual(['first', 'second'])
    await run.end()
  })
})

describe('a page with something under way', () => {
  it('asks before another page is opened', async () => {
    const { useLeaveQuestion } = await import('../../portal/pages/leave.tsx')
    await loadStorageTexts()
    const blockers = new Set<NavigationBlocker>()
    const history = {
      block: (blocker: NavigationBlocker) => {
        blockers.add(blocker)
        return () => void blockers.delete(blocker)
      },
    }
    let isUnderWay = true
    const run = await runHook(() => {
      const [, renderAgain] = useState({})
      const question = useLeaveQuestion(history, isUnderWay)
      const { props } = (question ?? { props: undefined }) as { readonly props: ConfirmProps | undefined }
      return { props, renderAgain: () => renderAgain({}) }
    })
    const goTo = (pathname: string) => {
      const [blocker] = blockers
      const places = { currentLocation: { pathname: '/bucket' }, nextLocation: { pathname }, action: 'PUSH' }
      return blocker?.blockerFn(places as never)
    }
    // a folder of the bucket is in the search of its address
    expect(goTo('/bucket')).toBe(false)
    const answers: (boolean | undefined)[] = []
    for (const answered of ['onClose', 'onConfirm'] as const) {
      let leaving: ReturnType<typeof goTo>
      await run.act(() => {
        leaving = goTo('/other')
      })
      await run.act(({ props }) => props?.[answered]())
      answers.push(await leaving)
      expect(run.latest().props).toBeUndefined()
    }
    expect(answers).toEqual([true, false])
    isUnderWay = false
    await run.act(({ renderAgain }) => renderAgain())
    expect(blockers.size).toBe(0)
    await run.end()
  })
})

describe('the next page of a list', () => {
  const paged = (fields: object) => {
    const fetchNextPage = vi.fn()
    const list = {
      hasNextPage: true,
      isFetchingNextPage: false,
      isFetchNextPageError: false,
      error: null,
      fetchNextPage,
      ...fields,
    }
    return { list: list as never, fetchNextPage }
  }

  it('is asked for once, and after a refusal by a person alone', async () => {
    const { atEndOf, LoadMore } = await import('../../portal/pages/more.tsx')
    const idle = paged({})
    atEndOf(idle.list)?.()
    expect(idle.fetchNextPage).toHaveBeenCalledOnce()
    const busy = paged({ isFetchingNextPage: true })
    atEndOf(busy.list)?.()
    expect(busy.fetchNextPage).not.toHaveBeenCalled()
    const { list } = paged({ isFetchNextPageError: true, error: refusal() })
    expect(atEndOf(list)).toBeUndefined()
    expect(htmlOf(createElement(LoadMore, { list, operation: 'list_servers' }))).toMatch(/Not now\..*Load more/)
    expect(atEndOf(paged({ hasNextPage: false }).list)).toBeUndefined()
  })

  const AT = '2026-01-01T00:00:00Z'
  const delivery = { id: 'd', event_type: 'x', state: 'failed', attempts: 1, created_at: AT, next_attempt_at: null }
  const billed = { name: 'web', resource_id: 's', resource_type: 'server', plan: '', date: '2026-01-01', hours: 1 }
  const times = { created_at: AT, started_at: null, finished_at: null }
  const operation = { id: 'o', kind: 'x', status: 'failed', error: '', resource: null, actor: 'user:a', ...times }
  const entry = { id: 'e', outcome: 'success', actor_email: 'a', resource_type: 'server', resource_id: 'x', at: AT }
  it.each<[string, OperationId, object, object, () => Promise<ReactElement>]>([
    [
      'the deliveries of a webhook',
      'list_webhook_deliveries',
      { path: { id: 'w' } },
      delivery,
      async () => createElement((await import('../../portal/nouns/webhook/deliveries.tsx')).Deliveries, WEBHOOK),
    ],
    [
      'the activity of the account',
      'list_operations',
      {},
      operation,
      async () => createElement((await import('../../portal/pages/activity.tsx')).ActivityPage),
    ],
    [
      'the log of what was billed',
      'list_billing_log',
      {},
      billed,
      async () => createElement((await import('../../portal/pages/settings/payments.tsx')).Log),
    ],
    [
      'rows of settings',
      'list_credits',
      {},
      { id: 'c', label: 'web', state: 'active', expires_at: null },
      async () => createElement((await import('../../portal/pages/settings/payments.tsx')).Credits),
    ],
    [
      'the audit log',
      'list_audit_entries',
      {},
      entry,
      async () => createElement((await import('../../portal/pages/audit.tsx')).AuditPage),
    ],
  ])('of %s is asked for again beside what was read', async (_what, operation, input, item, load) => {
    const query = cache.getQueryCache().build(cache, { queryKey: keyOf(operation, input) })
    query.setState({
      data: { pages: [{ items: [item], next_cursor: 'next' }], pageParams: [''] },
      status: 'error',
      error: refusal(),
      fetchMeta: { fetchMore: { direction: 'forward' } },
    })
    const html = htmlOf(await load())
    expect(html).toMatch(/<td[^]*Not now\.[^]*Load more/)
    expect(html.match(/Not now\./g)).toHaveLength(1)
  })
})

describe('the audit log', () => {
  it('names resources by their operations and lists, and has their ids', async () => {
    openPortal(customerPortal)
    const { register } = await import('../../portal/nouns/registry.ts')
    register((await import('../../portal/nouns.ts')).NOUNS)
    const entryOf = (type: string, id: string) => ({
      id: `entry of ${id}`,
      outcome: 'success',
      actor_email: 'ada@example.com',
      resource_type: type,
      resource_id: id,
      at: '2026-01-01T00:00:00Z',
    })
    const keep = (operation: OperationId, items: readonly object[]) =>
      cache.setQueryData(keyOf(operation, {}), { pages: [{ items, next_cursor: null }], pageParams: [''] })
    const ids = ['server-1234', 'storage-1234', 'ssh-key-1234', 'network-1234', 'session-1234'] as const
    keep(
      'list_audit_entries',
      ids.map((id) => entryOf(id.slice(0, -5).replace('-', '_'), id)),
    )
    const operationOn = (type: string, name: string) => ({ resource: { type, id: `${type}-1234`, name } })
    keep('list_operations', [
      operationOn('server', 'web'),
      operationOn('server', 'old'),
      operationOn('storage', 'disk'),
    ])
    keep('list_ssh_keys', [{ id: 'ssh-key-1234', name: 'laptop' }])
    keep('list_storages', [{ id: 'storage-1234', title: 'renamed' }])
    const { AuditPage } = await import('../../portal/pages/audit.tsx')
    const html = htmlOf(createElement(AuditPage))
    for (const text of ['server web</a>', 'storage renamed</a>', 'ssh key laptop</a>', 'network network-</a>'])
      expect(html).toContain(`>${text}`)
    expect(html).toContain('>session session-</span>')
    for (const id of ids) expect(html).toContain(`title="${id}"`)
  })
})

describe('what nobody named', () => {
  const AT = '2026-01-01T00:00:00Z'
  const storageOf = (id: string, more: object) => ({ id, title: '', is_boot: false, server_id: null, ...more })

  beforeEach(async () => {
    openPortal(customerPortal)
    const { register } = await import('../../portal/nouns/registry.ts')
    register((await import('../../portal/nouns.ts')).NOUNS)
    const keep = (operation: OperationId, items: readonly object[]) =>
      cache.setQueryData(keyOf(operation, {}), { pages: [{ items, next_cursor: null }], pageParams: [''] })
    keep('list_servers', [{ id: 'server-1', title: '', hostname: 'web-1' }])
    const storages = [
      storageOf('boot', { is_boot: true, server_id: 'server-1' }),
      storageOf('named', { is_boot: true, server_id: 'server-1', title: 'system' }),
      storageOf('elsewhere', { is_boot: true, server_id: 'server-of-page-2' }),
      storageOf('plain', { server_id: 'server-1' }),
    ]
    keep('list_storages', storages)
    keep('list_snapshots', [{ id: 's', title: '', storage_id: 'boot', created_at: AT, labels: {} }])
    for (const storage of storages)
      cache.setQueryData(keyOf('get_storage', { path: { id: storage.id } }), { storage, snapshots: [] })
  })

  it('is named after its server or its storage in lists', async () => {
    const { ListPage } = await import('../../portal/nouns/list-page.tsx')
    const { theNoun } = await import('../../portal/nouns/registry.ts')
    const storages = htmlOf(createElement(ListPage, { noun: theNoun('storage') }))
    for (const name of ['Boot storage of web-1', 'system', 'Boot storage of server-o', 'plain'])
      expect(storages).toContain(`<span dir="auto">${name}</span>`)
    const snapshots = htmlOf(createElement(ListPage, { noun: theNoun('snapshot') }))
    expect(snapshots).toContain('Snapshot of Boot storage of web-1, Jan 1, 2026')
  })

  it('is named so by links, operations and choices', async () => {
    const { Resource, Value } = await import('../../portal/nouns/value.tsx')
    const html = (element: ReactElement): string => htmlOf(element).replace(/<[^>]+>/g, '')
    expect([
      html(createElement(Value, { field: 'storage_id', value: 'boot' })),
      html(createElement(Resource, { type: 'storage', id: 'boot', name: null })),
      html(createElement(Resource, { type: 'storage', id: 'gone-for-long', name: null })),
      html(createElement(Resource, { type: 'storage', id: 'gone-for-long', name: 'data' })),
    ]).toEqual(['Boot storage of web-1', 'Boot storage of web-1', 'storage gone-for', 'storage data'])
    const { optionsOf } = await import('../../portal/nouns/options.ts')
    const Names = (): string =>
      optionsOf('storage')({}, '')
        .options.map(({ name }) => name)
        .join('|')
    expect(htmlOf(createElement(Names))).toBe('Boot storage of web-1|system|Boot storage of server-o|plain')
  })
})

describe('fields of lists and pages', () => {
  /** What the documents of both APIs say of fields with this name. */
  async function documented() {
    const { readFile } = await import('node:fs/promises')
    const schemas = await Promise.all(
      ['schema.ts', 'operator-schema.ts'].map((file) =>
        readFile(new URL(`../../client/${file}`, import.meta.url), 'utf8'),
      ),
    )
    const text = schemas.join('\n')
    const namesIn = (pattern: RegExp) => new Set(Array.from(text.matchAll(pattern), ([, name = '']) => name))
    const words = Array.from(text.matchAll(/^ +(\w+)\??: ([^;\n]*"[a-z_]+"[^;\n]*);$/gm), ([, name = '', type = '']) =>
      Array.from(type.matchAll(/"([^"]*)"/g), ([, word = '']) => [name, word] as const),
    )
    return {
      instants: namesIn(/Format: date-time(?:(?!\*\/)[^])*\*\/\s+(\w+)/g),
      numbers: namesIn(/^ +(\w+)\??: number(?: \| null)?;$/gm),
      words: words.flat(),
    }
  }

  const shownBy = ({ columns, facts }: Noun): readonly string[] => [...columns, ...facts]

  async function nounsOfBoth() {
    const { NOUNS } = await import('../../portal/nouns.ts')
    const { OPERATOR_NOUNS } = await import('../../portal/operator/nouns.ts')
    return [...NOUNS, ...OPERATOR_NOUNS]
  }

  it('say instants in words from now, whatever they are called', async () => {
    const { isInstant, textOf } = await import('../../portal/nouns/value.tsx')
    const { instants } = await documented()
    expect([...instants]).toEqual(expect.arrayContaining(['created_at', 'failing_since', 'valid_until']))
    const shown = (await nounsOfBoth()).flatMap(shownBy)
    expect(shown.filter((field) => instants.has(field) !== isInstant(field))).toEqual([])
    expect(textOf('failing_since', new Date().toISOString())).toBe('now')
  })

  it('have amounts below each other', async () => {
    const { isAmount } = await import('../../portal/nouns/value.tsx')
    const { numbers } = await documented()
    const columns = (await nounsOfBoth()).flatMap((noun) => noun.columns)
    expect(columns.filter((field) => numbers.has(field) !== isAmount(field))).toEqual([])
  })

  it('say words of the service without underscores', async () => {
    const { textOf } = await import('../../portal/nouns/value.tsx')
    const { words } = await documented()
    expect(textOf('image_status', 'not_built')).toBe('not built')
    expect(textOf('roles', ['bastion', 'nat_gateway'])).not.toContain('_')
    // texts of people, in other shapes
    const free = new Set(['name', 'reason'])
    const shown = new Set((await nounsOfBoth()).flatMap(shownBy))
    const raw = words.filter(
      ([field, word]) => shown.has(field) && !free.has(field) && textOf(field, word).includes('_'),
    )
    expect(raw).toEqual([])
    expect(textOf('title', 'my_disk')).toBe('my_disk')
  })

  it('are named by their labels in notes, which say no label again', async () => {
    const { Fields } = await import('../../portal/nouns/fields.tsx')
    const html = (name: string, description: string): string =>
      htmlOf(
        createElement(Fields, {
          fields: [{ name }],
          body: { properties: { [name]: { type: 'string', description } }, flags: {} },
          form: { values: {}, errors: {}, set: nothing, setErrors: nothing, faultCount: 0, isTouched: false },
        }),
      )
    expect(html('checksum_sha256', 'SHA-256 of the file at source_url, in hex.')).toContain(
      'SHA-256 of the file at “Address of the image”, in hex.',
    )
    expect(html('mode', 'live_then_cold stops it.')).toContain('“While they run, else stop and start” stops it.')
    expect(html('title', 'Title.')).not.toContain('Title.')
  })

  it('count several within a sentence', async () => {
    const { manyWithin } = await import('../../portal/texts/noun-texts.ts')
    const many = (await nounsOfBoth()).map(({ name }) => manyWithin(nounTexts(name)))
    expect(many).toEqual(expect.arrayContaining(['servers', 'SSH keys', 'floating IPs', 'Kubernetes hosts', 'nodes']))
  })
})

describe('the activity of the account', () => {
  it('leaves the first page of the list to the pages after it', async () => {
    openPortal(customerPortal)
    const { ActivityPage } = await import('../../portal/pages/activity.tsx')
    const pageOf = (id: string) => ({ items: [{ id }], next_cursor: id })
    const key = keyOf('list_operations')
    cache.setQueryData(key, { pages: [pageOf('new'), pageOf('old')], pageParams: ['', 'new'] })
    const page = await runHook(ActivityPage)
    expect(cache.getQueryData(key)).toMatchObject({ pages: [{}, {}] })
    await page.end()
    await vi.waitFor(() => expect(cache.getQueryData(key)).toEqual({ pages: [pageOf('new')], pageParams: [''] }))
  })
})

describe('a resource without an alarm', () => {
  it('may be among those that are not listed', async () => {
    openPortal(operatorPortal)
    const { Conditions } = await import('../../portal/operator/pages/subject.tsx')
    const html = (hasOthers: boolean) => htmlOf(createElement(Conditions, { alarms: [], hasOthers }))
    expect(html(true)).toContain('No alarm in the list names it.')
    expect(html(false)).toContain('Nothing is wrong with it now.')
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
