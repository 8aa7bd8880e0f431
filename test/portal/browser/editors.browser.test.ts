/** Pages and editors that are more than a noun: each is used from the first to the last step with the keyboard
 *  alone. */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { open, usePortal } from './kit/browser.ts'
import { type Keyboard, keyboardOf } from './kit/keyboard.ts'
import type { Person } from './kit/person.ts'
import { serverOf } from './kit/server.ts'

const portal = usePortal()

interface Journey {
  readonly name: string
  /** What it needs is made beside the browser; answers where it begins. */
  readonly begin: (person: Person) => Promise<string> | string
  readonly walk: (keyboard: Keyboard, person: Person) => Promise<void>
}

/** What the service answers when it makes one. */
type Made<Name extends string> = Readonly<Record<Name | 'operation', { readonly id: string }>>

const JOURNEYS: readonly Journey[] = [
  {
    name: 'object storage: enabled with keys that are shown once, read on a click, and rotated',
    begin: () => '/object-storage',
    async walk({ page, press, fill, sees, dialog, answer }) {
      await press('Enable in a zone')
      await dialog('Enable in a zone')
      await answer('Enable in a zone')
      await dialog('Keep this now')
      await answer('I have kept them')
      await sees('export AWS_ENDPOINT_URL=')
      await press('Show')
      await press('Hide')
      await press('Rotate keys')
      await dialog('Rotate keys eu-1a?')
      await fill('Type eu-1a to confirm', 'eu-1a')
      await answer('Rotate keys')
      await page.getByRole('dialog', { name: 'Keep this now' }).waitFor()
      await answer('I have kept them')
    },
  },
  {
    name: 'a firewall: rules are added, moved, removed and applied; what others changed is not overwritten',
    begin: async (person) => `/servers/${await serverOf(person)}?tab=firewall`,
    async walk({ page, press, fill, toggle, reach, sees, dialog, answer }, { customer }) {
      const rule = (number: number) => page.getByRole('listitem', { name: `Rule ${number}`, exact: true })
      await press('Add a rule')
      await fill('Ports', '80-')
      await sees('Enter a port, or a range such as 8000-8080.')
      await fill('Ports', '80')
      await press('Add a rule')
      await reach(rule(2).getByRole('textbox', { name: 'Comment' }))
      await page.keyboard.type('second')
      await page.keyboard.press('Alt+ArrowUp')
      await expect.poll(() => rule(1).getByRole('textbox', { name: 'Comment' }).inputValue()).toBe('second')
      // the focus moves with the rule
      await page.keyboard.type(' moved')
      expect(await rule(1).getByRole('textbox', { name: 'Comment' }).inputValue()).toBe('second moved')
      await press('Remove rule 1')
      await expect.poll(() => rule(1).getByRole('textbox', { name: 'Ports' }).inputValue()).toBe('80')
      // a label of the server is another version of it, and no other firewall
      const id = new URL(page.url()).pathname.split('/').at(-1)
      const path = `/v1/servers/${id}`
      expect((await customer.request('PATCH', path, { labels: { tier: 'web' } })).status).toBe(200)
      await press('Apply')
      await sees('There are no changes.')
      await toggle('Firewall')
      await sees(/^SSH from your address/)
      await press('Apply')
      await dialog('Apply, and lose SSH from here?')
      await answer('Cancel')
      const rules = [{ direction: 'in', action: 'accept', protocol: 'tcp', port_start: 443 }]
      await customer.finished((await customer.change('PUT', `${path}/firewall`, { enabled: false, rules })).id)
      await press('Apply')
      await answer('Apply')
      await sees('Somebody else has changed the firewall since you opened it.')
      await press('Discard my changes and show the new rules')
      await expect.poll(() => rule(1).getByRole('textbox', { name: 'Ports' }).inputValue()).toBe('443')
    },
  },
  {
    name: 'a server: price, quotas and manifest before it is created; another title after',
    begin: async ({ customer }) => {
      await customer.addSshKey()
      return '/servers/new'
    },
    async walk({ page, press, fill, open, reach, sees, answer }) {
      await page.getByRole('radio', { name: /^Tiny Linux/ }).waitFor()
      await fill('Name', 'priced')
      await sees(/^servers: 1 more, 0 of/)
      await page.getByRole('tab', { name: 'Terraform' }).waitFor()
      await reach(page.getByRole('tab', { name: 'CLI' }))
      await page.keyboard.press('End')
      await sees(/resource "svccloud_server"/)
      await page.keyboard.press('ArrowLeft')
      await sees(/kind: Server\n/)
      await press('Create server')
      await page.getByRole('heading', { level: 1, name: 'priced' }).waitFor()
      await open('Settings')
      await press('Edit')
      await fill('Title', 'Shop, first')
      await answer('Save')
      await page.getByRole('heading', { level: 1, name: 'Shop, first' }).waitFor()
    },
  },
  {
    name: 'a list: its order and its columns are chosen, and the columns stay',
    begin: async ({ customer }) => {
      for (const name of ['b', 'a', 'c'])
        await customer.request('POST', '/v1/init-scripts', { name, content: '#!/bin/sh\n' })
      return '/init-scripts'
    },
    async walk({ page, press, toggle, dialog, answer }) {
      const names = () => page.getByRole('rowheader').or(page.locator('td.first')).allInnerTexts()
      await expect.poll(names).toEqual(['c', 'a', 'b'])
      await press('Name')
      await expect.poll(names).toEqual(['a', 'b', 'c'])
      await press('Name')
      await expect.poll(names).toEqual(['c', 'b', 'a'])
      await press('Columns and order')
      await dialog('Init scripts: columns and order')
      await toggle('Created')
      await answer('Done')
      await page.getByRole('columnheader', { name: 'Created' }).waitFor({ state: 'detached' })
      await page.reload()
      await page.getByRole('columnheader', { name: 'Name' }).waitFor()
      expect(await page.getByRole('columnheader', { name: 'Created' }).count()).toBe(0)
    },
  },
  {
    name: 'support: a consent is given and revoked',
    begin: () => '/settings/support',
    async walk({ page, press, fill, choose, sees, dialog, answer }) {
      await press('Give consent')
      await dialog('Give consent')
      await choose('Access', 'Read and change')
      await fill('Hours', '2')
      await fill('Ticket', '4711')
      await answer('Give consent')
      await page.getByRole('row', { name: /4711/ }).getByText('valid').waitFor()
      await press('Revoke')
      await answer('Revoke')
      await sees('revoked')
    },
  },
  {
    name: 'private cloud: hosts are requested, and the request is withdrawn',
    begin: () => '/settings/private-cloud',
    async walk({ page, press, fill, sees, dialog, answer }) {
      await press('Ask for hosts')
      await dialog('Ask for hosts')
      await fill('What you need them for', 'A database that nobody shares')
      await answer('Ask for hosts')
      await page.getByRole('row', { name: /open/ }).waitFor()
      await press('Withdraw')
      await answer('Withdraw')
      await sees('withdrawn')
    },
  },
  {
    name: 'a router: a network leaves it, and joins again',
    async begin({ customer }) {
      const zone = 'eu-1b'
      const network = (await customer.request<Made<'network'>>('POST', '/v1/networks', { zone, name: 'inner' })).body
      await customer.finished(network.operation.id)
      const body = { zone, name: 'between', network_ids: [network.network.id] }
      const { router, operation } = (await customer.request<Made<'router'>>('POST', '/v1/routers', body)).body
      await customer.finished(operation.id)
      return `/routers/${router.id}?tab=networks`
    },
    async walk({ page, press, choose, dialog, answer }) {
      const row = page.getByRole('row', { name: /inner.*10\./ })
      await row.waitFor()
      await press('Detach')
      await dialog('Detach 10.0.0.1?')
      await answer('Detach')
      await row.waitFor({ state: 'detached' })
      await press('Attach network')
      await dialog('Attach network between?')
      await choose('Network', 'inner')
      await answer('Attach network')
      await row.waitFor()
    },
  },
  {
    name: 'quotas: more is requested, and the request is withdrawn',
    begin: () => '/settings/quotas',
    async walk({ page, press, fill, sees, answer }) {
      await press('Ask for more')
      await fill('New limit', '1000')
      await fill('What you need it for', 'More of the same')
      await answer('Ask for more')
      await sees('asked for')
      await press('Withdraw')
      await answer('Withdraw')
      await page.getByText('asked for', { exact: true }).waitFor({ state: 'detached' })
    },
  },
  {
    name: 'members: a role is changed, an invitation is sent again and revoked',
    begin: async ({ customer }) => {
      await customer.invite(() => ({ endpoints: portal.endpoints }), `colleague-${randomUUID()}@example.com`)
      return '/settings/members'
    },
    async walk({ page, press, fill, choose, sees, dialog, answer }) {
      const members = page.getByRole('table', { name: 'Members' })
      await members.getByRole('row', { name: /colleague/ }).waitFor()
      await press('Member')
      await choose('Role', 'Viewer')
      await answer('Change role')
      await members.getByRole('button', { name: 'Viewer' }).waitFor()
      await press('Invite somebody')
      await dialog('Invite somebody')
      await fill('Email', `friend-${randomUUID()}@example.com`)
      await answer('Invite somebody')
      await page
        .getByRole('table', { name: 'Invitations' })
        .getByRole('row', { name: /friend/ })
        .waitFor()
      await press('Send again')
      await answer('Send again')
      await press('Revoke')
      await answer('Revoke')
      await sees('revoked')
    },
  },
]

describe('with the keyboard alone', () => {
  it.each(JOURNEYS)('$name', async ({ begin, walk }) => {
    const person = await portal.signUp()
    const path = await begin(person)
    const page = await portal.page({ as: person })
    await open(page, path)
    await walk(keyboardOf(page), person)
  })
})
