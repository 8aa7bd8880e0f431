/** What somebody new tries, from the first key to who deleted a disk: in the browser as a person finds it, without an
 *  address typed, and as commands. They are done one after the other in one account. */
import type { Locator, Page } from 'playwright-core'
import { PUBLIC_KEY } from '../../../e2e/customer.ts'
import { dialogOf } from './browser.ts'

/** What a person does with the page. Each step waits for what it needs. */
interface Hands {
  readonly page: Page
  readonly click: (target: Locator) => Promise<void>
  /** Clicks into a field and types. */
  readonly type: (target: Locator, text: string) => Promise<void>
  /** Presses a single key. */
  readonly press: (key: string) => Promise<void>
  readonly counts: { clicks: number; keys: number }
}

function handsOf(page: Page): Hands {
  const counts = { clicks: 0, keys: 0 }
  const click = async (target: Locator): Promise<void> => {
    await target.click()
    counts.clicks++
  }
  return {
    page,
    counts,
    click,
    async type(target, text) {
      await click(target)
      await target.fill('')
      await target.pressSequentially(text)
      counts.keys += text.length
    },
    async press(key) {
      await page.keyboard.press(key)
      counts.keys++
    },
  }
}

interface Task {
  readonly name: string
  readonly walk: (hands: Hands) => Promise<void>
  /** The same with the command, for a shell. `@key.pub` is a file. */
  readonly commands: readonly string[]
  /** They ask for the password. */
  readonly isAsked?: boolean
}

const acceptPort = (port: number) => ({ direction: 'in', action: 'accept', protocol: 'tcp', port_start: port })
/** SSH from one address. */
const WEB_RULES = [{ ...acceptPort(22), remote_cidrs: ['203.0.113.7'] }, acceptPort(80), acceptPort(443)]
/** Where tasks run. */
const ZONE = 'eu-1b'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const inDialog = (page: Page) => dialogOf(page).last()
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
const goTo = ({ page, click }: Hands, name: string) =>
  click(page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link', { name, exact: true }))
const openItem = async (hands: Hands, list: string, name: string): Promise<void> => {
  await goTo(hands, list)
  await hands.click(hands.page.getByRole('row').getByRole('link', { name, exact: true }))
  await heading(hands.page, name)
}
const fromMenu = async ({ page, click }: Hands, name: string): Promise<void> => {
  await click(page.getByRole('main').getByRole('button', { name: 'More actions' }))
  await click(page.getByRole('menuitem', { name, exact: true }))
}
const state = (page: Page, word: string) => page.getByRole('main').getByText(word, { exact: true }).first().waitFor()
const confirm = ({ page, click }: Hands, name: string) =>
  click(inDialog(page).getByRole('button', { name, exact: true }))

export const TASKS: readonly Task[] = [
  {
    name: 'add my key',
    async walk(hands) {
      const { page, click, type } = hands
      await goTo(hands, 'SSH keys')
      await click(page.getByRole('link', { name: 'Create SSH key' }))
      await type(page.getByLabel('Name'), 'laptop')
      // pasted: one key
      await click(page.getByLabel('Public key'))
      await page.getByLabel('Public key').fill(PUBLIC_KEY)
      hands.counts.keys++
      await click(button(page, 'Create SSH key'))
      await heading(page, 'laptop')
    },
    commands: ['svccloud ssh-key create --name laptop --public-key @key.pub'],
  },
  {
    name: 'make a server',
    async walk(hands) {
      const { page, click, type } = hands
      await goTo(hands, 'Servers')
      await click(page.getByRole('link', { name: 'Create server' }))
      await type(page.getByLabel('Name'), 'web')
      await click(page.getByText(ZONE.toUpperCase(), { exact: true }))
      await click(page.getByText('Tiny Linux'))
      await click(button(page, 'Create server'))
      await heading(page, 'web')
      await state(page, 'started')
    },
    commands: [`svccloud server create --zone ${ZONE} --hostname web --plan tiny --template tiny-linux`],
  },
  {
    name: 'look at its console',
    async walk(hands) {
      const { page, click } = hands
      await openItem(hands, 'Servers', 'web')
      await click(page.getByRole('tab', { name: 'Console' }))
      await click(button(page, 'Open the console'))
      await page.getByText('Connected', { exact: true }).waitFor()
    },
    commands: ['svccloud console web --for 1'],
  },
  {
    name: 'see what it costs',
    async walk(hands) {
      await openItem(hands, 'Servers', 'web')
      await hands.page.getByText('Price per hour').waitFor()
    },
    commands: ['svccloud server get web --columns hourly_price_millicents'],
  },
  {
    name: 'stop it',
    async walk(hands) {
      await openItem(hands, 'Servers', 'web')
      await hands.click(button(hands.page, 'Stop'))
      await confirm(hands, 'Stop')
      await state(hands.page, 'stopped')
    },
    commands: ['svccloud server stop web'],
  },
  {
    name: 'start it again',
    async walk(hands) {
      await openItem(hands, 'Servers', 'web')
      await hands.click(button(hands.page, 'Start'))
      await state(hands.page, 'started')
    },
    commands: ['svccloud server start web'],
  },
  {
    name: 'protect it from deletion',
    async walk(hands) {
      const { page, click } = hands
      await openItem(hands, 'Servers', 'web')
      await click(page.getByRole('tab', { name: 'Settings' }))
      await click(page.getByText('Protected from deletion'))
      await page.getByRole('switch', { name: 'Protected from deletion', checked: true }).waitFor()
    },
    commands: ['svccloud server update web --is-protected'],
  },
  {
    name: 'let only SSH and web traffic in',
    async walk(hands) {
      const { page, click } = hands
      await openItem(hands, 'Servers', 'web')
      await click(page.getByRole('tab', { name: 'Firewall' }))
      await click(button(page, 'Add common rules'))
      await click(page.getByRole('menuitem', { name: 'SSH from my address' }))
      await click(button(page, 'Add common rules'))
      await click(page.getByRole('menuitem', { name: 'Web: HTTP and HTTPS' }))
      await click(page.getByText('Firewall', { exact: true }).last())
      await click(button(page, 'Apply'))
      await page.getByText('There are no changes.').waitFor()
    },
    commands: [`svccloud server set-firewall web --enabled --rules '${JSON.stringify(WEB_RULES)}'`],
  },
  {
    name: 'make a private network',
    async walk(hands) {
      const { page, click, type } = hands
      await goTo(hands, 'Networks')
      await click(page.getByRole('link', { name: 'Create network' }))
      await type(page.getByLabel('Name'), 'inner')
      await click(page.getByText(ZONE.toUpperCase(), { exact: true }))
      await click(button(page, 'Create network'))
      await heading(page, 'inner')
    },
    commands: [`svccloud network create --zone ${ZONE} --name inner`],
  },
  {
    name: 'make a disk',
    async walk(hands) {
      const { page, click, type } = hands
      await goTo(hands, 'Storages')
      await click(page.getByRole('link', { name: 'Create storage' }))
      await type(page.getByLabel('Title'), 'data')
      await click(page.getByText(ZONE.toUpperCase(), { exact: true }))
      await click(button(page, 'Create storage'))
      await heading(page, 'data')
      await state(page, 'online')
    },
    commands: [`svccloud storage create --zone ${ZONE} --title data --size-gibibytes 10`],
  },
  {
    name: 'attach it to the server',
    async walk(hands) {
      const { page, click } = hands
      await openItem(hands, 'Storages', 'data')
      await click(button(page, 'Attach'))
      await click(inDialog(page).getByRole('button', { name: /Server$/ }))
      await click(page.getByRole('option', { name: 'web' }))
      await confirm(hands, 'Attach')
      await page.getByRole('main').getByRole('link', { name: 'web', exact: true }).waitFor()
    },
    commands: ['svccloud storage attach data --server-id web'],
  },
  {
    name: 'make it larger',
    async walk(hands) {
      const { page, type } = hands
      await openItem(hands, 'Storages', 'data')
      await fromMenu(hands, 'Grow')
      await type(inDialog(page).getByLabel('Size'), '20')
      await confirm(hands, 'Grow')
      await state(page, '20 GiB')
    },
    commands: ['svccloud storage resize data --size-gibibytes 20'],
  },
  {
    name: 'keep its content with a snapshot',
    async walk(hands) {
      const { page, click, type } = hands
      await openItem(hands, 'Storages', 'data')
      await click(button(page, 'Take snapshot'))
      await type(inDialog(page).getByRole('textbox').first(), 'before')
      await confirm(hands, 'Take snapshot')
      await goTo(hands, 'Snapshots')
      await page.getByRole('row', { name: /before/ }).waitFor()
    },
    commands: ['svccloud snapshot create data --title before'],
  },
  {
    name: 'see what this month costs',
    async walk({ page, click }) {
      await click(page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link', { name: 'Overview' }))
      await page.getByText('This month', { exact: true }).waitFor()
    },
    commands: ['svccloud usage summary'],
  },
  {
    name: 'invite a colleague',
    async walk(hands) {
      const { page, click, type } = hands
      await openSettings(hands, 'Members')
      await click(button(page, 'Invite somebody'))
      await type(inDialog(page).getByLabel('Email'), 'colleague@example.com')
      await confirm(hands, 'Invite somebody')
      await page.getByRole('row', { name: /colleague/ }).waitFor()
    },
    commands: [],
  },
  {
    name: 'make a token for a script',
    async walk(hands) {
      const { page, click, type } = hands
      await openSettings(hands, 'API tokens')
      await click(button(page, 'Create token'))
      await type(inDialog(page).getByLabel('Name'), 'backup-script')
      await confirm(hands, 'Create token')
      await inDialog(page)
        .getByText(/curl|svccloud login/)
        .first()
        .waitFor()
    },
    commands: ['svccloud token create backup-script'],
    isAsked: true,
  },
  {
    name: 'ask for more servers',
    async walk(hands) {
      const { page, click, type } = hands
      await openSettings(hands, 'Quotas')
      await click(page.getByRole('row', { name: /^servers/ }).getByRole('button', { name: 'Ask for more' }))
      await type(inDialog(page).getByLabel('New limit'), '100')
      await type(inDialog(page).getByLabel('What you need it for'), 'A fair')
      await confirm(hands, 'Ask for more')
      await page.getByText('asked for', { exact: true }).first().waitFor()
    },
    commands: [`svccloud quota-request create --name servers --limit 100 --reason 'A fair'`],
  },
  {
    name: 'find something by its name',
    async walk({ page, press, counts }) {
      await press('Control+K')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.type('inner')
      counts.keys += 'inner'.length
      await page.getByRole('option', { name: /inner/ }).first().waitFor()
      await press('Enter')
      await heading(page, 'inner')
    },
    commands: ['svccloud search inner'],
  },
  {
    name: 'delete the disk',
    async walk(hands) {
      const { page, type } = hands
      await openItem(hands, 'Snapshots', 'before')
      await fromMenu(hands, 'Delete')
      await type(inDialog(page).getByLabel('Type before to confirm'), 'before')
      await confirm(hands, 'Delete')
      await openItem(hands, 'Storages', 'data')
      await fromMenu(hands, 'Detach')
      await confirm(hands, 'Detach')
      await page.getByRole('main').getByRole('link', { name: 'web', exact: true }).waitFor({ state: 'detached' })
      await fromMenu(hands, 'Delete')
      await type(inDialog(page).getByLabel('Type data to confirm'), 'data')
      await confirm(hands, 'Delete')
      await page.getByText('This storage is deleted').waitFor()
    },
    commands: [
      'svccloud snapshot delete before --yes',
      'svccloud storage detach data',
      'svccloud storage delete data --yes',
    ],
  },
  {
    name: 'find out who deleted that disk',
    async walk(hands) {
      await goTo(hands, 'Activity')
      await hands.page.getByRole('row', { name: /storage: delete.*storage data.*@example\.com/ }).waitFor()
    },
    commands: ['svccloud operation list --kind storage.delete --columns resource,actor_name'],
  },
]

async function openSettings(hands: Hands, tab: string): Promise<void> {
  await goTo(hands, 'Settings')
  await hands.click(hands.page.getByRole('tab', { name: tab, exact: true }))
}

const ALL = TASKS.flatMap(({ commands }) => commands)
const typedIn = (commands: readonly string[]): number => commands.reduce((sum, { length }) => sum + length, 0)

interface Result {
  readonly name: string
  readonly clicks: number
  readonly keys: number
}

/** Does all of them, each beginning at the overview. */
export async function doTasks(page: Page): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const { name, walk } of TASKS) {
    await page.goto('/dashboard')
    await page.getByRole('heading', { level: 1 }).waitFor()
    const hands = handsOf(page)
    await walk(hands)
    results.push({ name, ...hands.counts })
  }
  return results
}

/** The page of the documentation, in Markdown. */
export const pageOf = (results: readonly Result[]): string =>
  [
    '# Tasks of the first days, in the portal and with the command',
    '',
    'Twenty things that somebody new tries, in this order, in one account. `npm run portal:tasks` does each of them in',
    'the browser, starting at the overview, without an address that is typed, and writes this page; a test holds it',
    'against what it does. Clicks and keys are those of a person who knows where things are. A pasted text is one key.',
    'Commands are typed in full, without completion; the account is known to the command already.',
    '',
    '| Task | Clicks | Keys | Commands | Characters |',
    '|---|---:|---:|---:|---:|',
    ...results.map(({ name, clicks, keys }) => {
      const { commands = [] } = TASKS.find((task) => task.name === name) ?? {}
      const [count, characters] = commands.length === 0 ? ['–', '–'] : [commands.length, typedIn(commands)]
      return `| ${name} | ${clicks} | ${keys} | ${count} | ${characters} |`
    }),
    `| together | ${sumOf(results, 'clicks')} | ${sumOf(results, 'keys')} | ${ALL.length} | ${typedIn(ALL)} |`,
    '',
    'Invitations have no command; `svccloud token create` asks for the password, because a token may not make another',
    '([the command line](cli.md)).',
    '',
    '## The commands',
    '',
    '| Task | Command |',
    '|---|---|',
    ...TASKS.flatMap(({ name, commands }) =>
      commands.map((command) => `| ${name} | \`${command.replaceAll('|', '\\|')}\` |`),
    ),
    '',
  ].join('\n')

const sumOf = (results: readonly Result[], which: 'clicks' | 'keys'): number =>
  results.reduce((sum, result) => sum + result[which], 0)
