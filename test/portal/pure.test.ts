/** The parts of the portal that need no browser. */
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { OPERATION_STATUSES } from '../../domain/operations.ts'
import { type Pages, withChanges } from '../../portal/api/apply.ts'
import { eventOf, serverSentEvents } from '../../portal/api/events.ts'
import { safeReturn } from '../../portal/api/return-to.ts'
import { bodyOf, changesOf, schemaOf } from '../../portal/nouns/form.ts'
import { yamlOf } from '../../portal/nouns/manifest.ts'
import resources from '../../portal/generated/terraform.json' with { type: 'json' }
import { commandLine, curlOf, quoted } from '../../portal/nouns/snippet.ts'
import { terraformOf } from '../../portal/nouns/terraform.ts'
import { operatorPortal } from '../../portal/operator/portal.ts'
import { en } from '../../portal/texts/en.ts'
import { pseudo } from '../../portal/texts/pseudo.ts'

const pages = (...ids: readonly (readonly string[])[]): Pages => ({
  pages: ids.map((page) => ({ items: page.map((id) => ({ id })), next_cursor: null })),
  pageParams: [],
})
const idsOf = (list: Pages): readonly (readonly string[])[] => list.pages.map(({ items }) => items.map(({ id }) => id))

describe('a change of the stream', () => {
  const apply = (list: Pages, changes: readonly (readonly [string, { id: string } | null])[], isWhole: boolean) =>
    withChanges(list, new Map(changes), isWhole)

  it('replaces items in their places, on any page', () => {
    const started = (id: string) => ({ id, state: 'started' })
    const { list, isBehind } = apply(
      pages(['a', 'b'], ['c']),
      [
        ['c', started('c')],
        ['a', started('a')],
      ],
      false,
    )
    expect(list.pages.map(({ items }) => items)).toEqual([[started('a'), { id: 'b' }], [started('c')]])
    expect(isBehind).toBe(false)
  })

  it('puts new items first, because lists are newest first', () => {
    const { list, isBehind } = apply(
      pages(['a'], ['b']),
      [
        ['older', { id: 'older' }],
        ['new', { id: 'new' }],
      ],
      true,
    )
    expect(idsOf(list)).toEqual([['new', 'older', 'a'], ['b']])
    expect(isBehind).toBe(false)
  })

  it('does not guess whether a filter lets a new item through, and applies the others', () => {
    const { list, isBehind } = apply(
      pages(['a', 'b']),
      [
        ['new', { id: 'new' }],
        ['b', null],
      ],
      false,
    )
    expect(idsOf(list)).toEqual([['a']])
    expect(isBehind).toBe(true)
  })

  it('removes an item, and leaves other lists as they are', () => {
    expect(idsOf(apply(pages(['a', 'b'], ['c']), [['b', null]], true).list)).toEqual([['a'], ['c']])
    const list = pages(['a'])
    expect(apply(list, [['x', null]], true)).toEqual({ list, isBehind: false })
    expect(apply(list, [['x', null]], true).list).toBe(list)
  })

  it('does not let a list grow all day, unless somebody reads on', () => {
    const many = Array.from({ length: 200 }, (_, at) => `${at}`)
    const added = [['new', { id: 'new' }]] as const
    expect(apply(pages(many), added, true).isBehind).toBe(true)
    expect(apply(pages(many.slice(1)), added, true).isBehind).toBe(false)
    expect(apply(pages(many, ['old']), added, true).isBehind).toBe(false)
  })
})

describe('the body of a form', () => {
  const body = {
    properties: {
      rack: { type: 'string' },
      cpu_pool: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      bmc: { type: 'object', properties: { address: { type: 'string', maxLength: 9 } } },
    },
    flags: {},
  }

  it('has the fields of an object together', () => {
    const fields = [{ name: 'rack' }, { name: 'bmc.protocol' }, { name: 'bmc.address' }]
    const values = { rack: '', 'bmc.protocol': 'redfish', 'bmc.address': 'b' }
    expect(bodyOf(fields, values)).toEqual({ bmc: { protocol: 'redfish', address: 'b' } })
    expect(schemaOf(body, 'bmc.address')).toEqual({ type: 'string', maxLength: 9 })
    expect(schemaOf(body, 'bmc.unknown')).toEqual({})
  })

  it('of a change has what differs alone, and null for what was emptied', () => {
    const fields = [{ name: 'rack' }, { name: 'cpu_pool' }, { name: 'overcommit' }]
    const before = { rack: 'a', cpu_pool: 'fast', overcommit: undefined }
    expect(changesOf(fields, body, { before, after: { ...before, rack: 'b' } })).toEqual({ rack: 'b' })
    expect(changesOf(fields, body, { before, after: { ...before, cpu_pool: '' } })).toEqual({ cpu_pool: null })
    expect(changesOf(fields, body, { before, after: { ...before, cpu_pool: undefined } })).toEqual({ cpu_pool: null })
    // the service says that it needs one
    expect(changesOf(fields, body, { before, after: { ...before, rack: '' } })).toEqual({ rack: '' })
    expect(changesOf(fields, body, { before, after: { ...before, overcommit: '' } })).toEqual({})
    expect(changesOf(fields, body, { before, after: before })).toEqual({})
  })
})

describe('server-sent events', () => {
  it('are found whatever pieces they arrive in', async () => {
    const text = ': keepalive\n\nevent: change\ndata: {"a":1}\nid: 7\n\nevent: output\r\ndata: eA==\r\n\r\n'
    const bytes = new TextEncoder().encode(text)
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    const events = await Array.fromAsync(serverSentEvents(body))
    expect(events).toEqual([
      { event: 'change', data: '{"a":1}', id: '7' },
      { event: 'output', data: 'eA==', id: '' },
    ])
  })

  it('may be only an id', () => {
    expect(eventOf('id: 12')).toEqual({ event: '', data: '', id: '12' })
    expect(eventOf(': nothing')).toBeUndefined()
  })
})

describe('where a sign-in continues', () => {
  it.each([
    ['/servers?tab=console#x', '/servers?tab=console#x'],
    ['//evil.example', '/dashboard'],
    ['/\\evil.example', '/dashboard'],
    ['https://evil.example/', '/dashboard'],
    ['javascript:alert(1)', '/dashboard'],
    ['', '/dashboard'],
    [null, '/dashboard'],
  ])('%s', (wanted, expected) => {
    expect(safeReturn(wanted, 'https://portal.example')).toBe(expected)
  })
})

describe('the same as a command', () => {
  const rule = { method: 'POST', path: '/v1/servers/{id}/stop', command: 'server stop' } as const

  it('quotes what a shell would read as something else', () => {
    expect(quoted('web-1.example')).toBe('web-1.example')
    expect(quoted("it's $(reboot)")).toBe(`'it'\\''s $(reboot)'`)
    expect(quoted('')).toBe(`''`)
  })

  it('has flags by type, and leaves out what is not filled in', () => {
    const body = {
      hostname: 'web 1',
      public_ipv4: true,
      start: false,
      ssh_key_ids: ['a', 'b'],
      labels: { tier: 'x y' },
    }
    const types = { hostname: 'text', public_ipv4: 'boolean', start: 'boolean', ssh_key_ids: 'list', labels: 'map' }
    expect(
      commandLine(rule, { id: 's' }, { ...body, title: '' }, { ...types, title: 'text' })?.split(' \\\n  '),
    ).toEqual([
      'svccloud server stop s',
      `--hostname 'web 1'`,
      '--public-ipv4',
      '--start=false',
      '--ssh-key-ids a',
      '--ssh-key-ids b',
      `--labels 'tier=x y'`,
    ])
  })

  it('never holds a token', () => {
    const text = curlOf(rule, { id: 'a/b' }, { stop_type: 'hard' }, 'https://portal.example')
    expect(text).toContain('-H "Authorization: Bearer $TOKEN"')
    expect(text).toContain('https://portal.example/v1/servers/a%2Fb/stop')
    expect(text).toContain(`'{\n  "stop_type": "hard"\n}'`)
  })
})

describe('a manifest as YAML', () => {
  const script = '#!/bin/sh\necho hello\nEOF\nreboot\n'
  const manifest = {
    apiVersion: 'compute.example.com/v1',
    kind: 'Server',
    metadata: { name: 'web-1', labels: { 'app.example.com/tier': 'on', empty: '' }, annotations: {} },
    spec: {
      title: ' it\'s: "a # text" ',
      script,
      count: 3,
      ratio: 0.5,
      isOn: false,
      none: null,
      version: '1.30',
      words: [
        'yes',
        'true',
        'null',
        '~',
        '- x',
        '[a]',
        '{b}',
        '&c',
        '!d',
        '0x1f',
        '2026-11-30',
        '\u202eevil',
        '\u2028',
      ],
      lists: [[1, [2]], [], [{ a: 1, b: [{ c: 'x' }] }]],
    },
  }

  it('reads as what it was made from', () => {
    // kubectl reads the older version, which has more words for booleans
    expect(parse(yamlOf(manifest), { version: '1.1' })).toEqual(manifest)
  })

  it('has no line that a text has made', () => {
    const lines = yamlOf(manifest).split('\n')
    expect(lines).toContain('  name: web-1')
    expect(lines.filter((line) => /^\s*(EOF|reboot)/.test(line))).toEqual([])
  })
})

describe('states of operations and entries of the audit log', () => {
  it('are the words of the API, which its documents and commands use', () => {
    for (const status of OPERATION_STATUSES) expect(en.operations.statuses[status]).toBe(status)
    for (const [outcome, text] of Object.entries(en.audit.outcomes)) expect(text).toBe(outcome)
  })
})

describe('texts for tests', () => {
  it('are all marked, those of functions too', () => {
    const marked = pseudo({ a: 'Save', b: { c: (name: string) => `Delete ${name}?` } })
    expect(marked.a).toBe('[Sávé··]')
    expect(marked.b.c('x')).toMatch(/^\[Délété x\?·+\]$/)
  })
})

describe('what a member of the staff may call', () => {
  const me = (role: string) => ({ staff: { id: 's', email: 's@example.com', name: 'Sam', role } })
  const may = (role: string) =>
    Object.entries(operatorPortal.operations)
      .filter(([, rule]) => operatorPortal.permits(rule, me(role)))
      .map(([id]) => id)

  it('follows from the role, and is nothing of a role before it is read', () => {
    expect(may('support')).toEqual(expect.arrayContaining(['list_nodes', 'create_support_session']))
    expect(may('support')).not.toEqual(expect.arrayContaining(['drain_node']))
    expect(may('support')).not.toEqual(expect.arrayContaining(['create_coupon']))
    expect(may('finance')).toEqual(expect.arrayContaining(['create_coupon', 'list_invoice_runs']))
    expect(may('operations')).toEqual(Object.keys(operatorPortal.operations))
    const { drain_node: drain, log_in_staff: logIn } = operatorPortal.operations
    expect([drain, logIn].map((rule) => rule !== undefined && operatorPortal.permits(rule, undefined))).toEqual([
      false,
      true,
    ])
  })
})

describe('a resource of Terraform', () => {
  it('says what a form holds, laid out as Terraform does', () => {
    const body = {
      zone: 'eu-1a',
      hostname: 'web-1',
      start: false,
      public_ipv4: true,
      labels: { env: 'prod', 'a.b/c': '' },
      ssh_key_ids: ['k1', 'k2'],
      networks: [{ network_id: 'n1', ipv4_address: null }],
      user_data: '#cloud-config\n',
      init_script_id: null,
      title: '',
      ssh_keys: [],
      backup_schedule: {},
    }
    expect(terraformOf(resources.create_server, body)).toBe(
      `
resource "svccloud_server" "web-1" {
  zone                 = "eu-1a"
  hostname             = "web-1"
  desired_power        = "stopped"
  public_ipv4          = true
  labels               = { env = "prod", "a.b/c" = "" }
  ssh_key_ids          = ["k1", "k2"]
  networks             = [{ network_id = "n1" }]
  user_data_wo         = "#cloud-config\\n"
  user_data_wo_version = 1
}`.slice(1),
    )
  })

  it('says hostile texts as texts', () => {
    const nameOf = (name: string) =>
      terraformOf({ type: 't', name: 'name', secrets: [], leaves: ['policy'], creates: {} }, { name })
    expect(nameOf('a"\n${b} %{c} \\b\b')).toBe(
      'resource "t" "a_b_c_b_" {\n  name = "a\\"\\n$${b} %%{c} \\\\b\\u0008"\n}',
    )
    expect(nameOf('1st')).toContain('"t" "_1st"')
    expect(nameOf('')).toBe('resource "t" "example" {\n}')
  })

  it('is not there for what it cannot say', () => {
    expect(terraformOf(resources.create_server_group, { name: 'g', policy: 'x' })).toBeUndefined()
  })
})
