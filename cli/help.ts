/** What the commands are, for the screen and for the reference in the documentation; all of it comes from the
 *  routes. */
import { GLOBAL_FLAGS, type GlobalFlag } from './arguments.ts'
import { type Command, type Flag, nameOf } from './commands.ts'
import { EXIT_MEANINGS } from './exit.ts'

export interface OwnCommand {
  readonly name: string
  readonly parameters: string
  readonly summary: string
  readonly description: string
  readonly flags: readonly GlobalFlag[]
}

/** Commands that no route stands for. */
export const OWN_COMMANDS = [
  {
    name: 'login',
    parameters: '',
    summary: 'Sign in, and remember it as a profile',
    description:
      'With --token (- reads it from the input) the token is kept as it is. Otherwise email, password and second ' +
      'factor are asked for, or taken from --email, SVCCLOUD_PASSWORD and --code, and a token for this machine ' +
      'is made of them.',
    flags: [
      { flag: 'url', value: 'URL', description: 'Address of the service (default http://127.0.0.1:8080).' },
      { flag: 'token', value: 'TOKEN', description: 'An API token; - reads it from the input.' },
      { flag: 'email', value: 'EMAIL', description: 'Who signs in.' },
      { flag: 'code', value: 'CODE', description: 'Code of the authenticator, or a recovery code.' },
      {
        flag: 'scope',
        value: 'SCOPE',
        description:
          'Scope of the token that is made: read, read_write, or permissions separated by commas (default read_write).',
      },
    ],
  },
  {
    name: 'logout',
    parameters: '',
    summary: 'Forget a profile',
    description: 'The token itself stays valid until it is revoked in the portal.',
    flags: [],
  },
  {
    name: 'profile',
    parameters: '[list | use NAME]',
    summary: 'List profiles, or choose one',
    description:
      'Profiles are kept in $XDG_CONFIG_HOME/svccloud/config.json, readable by its owner only. SVCCLOUD_URL and ' +
      'SVCCLOUD_TOKEN win over them.',
    flags: [],
  },
  {
    name: 'console',
    parameters: 'SERVER',
    summary: "Attach this terminal to a server's serial console",
    description:
      'Keys go to the guest as they are typed; Ctrl-] leaves. Comes back by itself after a lost connection. ' +
      'Input that is no terminal is typed, then the console is shown on.',
    flags: [{ flag: 'for', value: 'SECONDS', description: 'Leave after so long.' }],
  },
  {
    name: 'audit verify',
    parameters: '[FILE]',
    summary: "Check the audit log's hash chain",
    description:
      'Of an export (- reads the input) without asking the service; without a file the whole log is fetched and ' +
      'checked.',
    flags: [
      {
        flag: 'start',
        value: 'HASH',
        description: 'Hash of the entry before the first, for an export that does not begin at 1.',
      },
    ],
  },
  {
    name: 'exec-credential',
    parameters: '--cluster KIND/ID',
    summary: 'Print a token for a cluster, for kubectl',
    description:
      'Named as the exec plugin of a kubeconfig: prints an ExecCredential of client.authentication.k8s.io/v1 ' +
      'that kubectl keeps until it expires. Ends with 1 where the service has no such operation.',
    flags: [
      { flag: 'cluster', value: 'KIND/ID', description: 'The cluster, as in kubernetes-cluster/ID or dev-cluster/ID.' },
    ],
  },
  {
    name: 'api',
    parameters: 'METHOD PATH',
    summary: 'Send any request and print the answer',
    description: 'The body comes from --file.',
    flags: [],
  },
  {
    name: 'completion',
    parameters: 'bash | zsh | fish',
    summary: 'Print the completion script of a shell',
    description: 'For example: source <(svccloud completion bash)',
    flags: [],
  },
  { name: 'help', parameters: '[COMMAND]', summary: 'Say what a command takes', description: '', flags: [] },
] as const satisfies readonly OwnCommand[]

export function overview(commands: readonly Command[]): string {
  const rows = [
    ...OWN_COMMANDS.map(({ name, summary }) => [name, summary] as const),
    ...commands.map((command) => [nameOf(command), command.route.summary] as const),
  ].sort(([one], [other]) => (one < other ? -1 : 1))
  return [
    'Usage: svccloud COMMAND [ARGUMENTS] [FLAGS]',
    '',
    'Commands:',
    ...pairs(rows),
    '',
    'Flags of every command:',
    ...pairs(GLOBAL_FLAGS.map(flagPair)),
    '',
    'svccloud COMMAND --help says more. Names are taken wherever ids are.',
    '',
  ].join('\n')
}

export const nounHelp = (noun: string, commands: readonly Command[]): string =>
  [
    'Usage: svccloud ' + noun + ' COMMAND',
    '',
    'Commands:',
    ...pairs([
      ...OWN_COMMANDS.filter(({ name }) => name.startsWith(`${noun} `)).map(
        ({ name, summary }) => [name, summary] as const,
      ),
      ...commands
        .filter((command) => command.noun === noun)
        .map((command) => [nameOf(command), command.route.summary] as const),
    ]),
    '',
  ].join('\n')

export function commandHelp(command: Command): string {
  const { route, flags } = command
  return [
    `Usage: ${usageOf(command)}`,
    '',
    sentence(route.summary),
    ...(route.description === undefined ? [] : [route.description]),
    ...(flags.length === 0 ? [] : ['', 'Flags:', ...pairs(flags.map(ownPair))]),
    '',
    `Operation: ${route.id} (${route.method} ` +
      `${route.path})${route.permission === null ? '' : `, permission ${route.permission}`}`,
    '',
  ].join('\n')
}

export const ownHelp = ({ name, parameters, summary, description, flags }: OwnCommand): string =>
  [
    `Usage: svccloud ${[name, parameters].filter((part) => part !== '').join(' ')}`,
    '',
    sentence(summary),
    ...(description === '' ? [] : [description]),
    ...(flags.length === 0 ? [] : ['', 'Flags:', ...pairs(flags.map(flagPair))]),
    '',
  ].join('\n')

const usageOf = (command: Command): string =>
  [
    'svccloud',
    nameOf(command),
    ...command.parameters.map((name) => (name === 'id' ? command.noun : name).toUpperCase().replaceAll('_', '-')),
    ...command.flags.filter(({ isRequired }) => isRequired).map((flag) => `--${flag.flag} ${valueName(flag)}`),
    ...(command.flags.some(({ isRequired }) => !isRequired) ? ['[FLAGS]'] : []),
  ].join(' ')

const VALUE_NAMES = {
  text: 'TEXT',
  integer: 'NUMBER',
  boolean: '',
  list: 'A,B,…',
  map: 'KEY=VALUE',
  json: 'JSON',
} as const
const valueName = ({ type }: Flag): string => VALUE_NAMES[type]
const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

function ownPair(flag: Flag): readonly [string, string] {
  const { choices, defaultValue, isRequired, isNullable, description } = flag
  const isSaid =
    defaultValue !== undefined &&
    defaultValue !== '' &&
    JSON.stringify(defaultValue) !== '{}' &&
    JSON.stringify(defaultValue) !== '[]'
  const facts = [
    ...(choices.length === 0 || flag.type === 'boolean' ? [] : [`one of ${choices.join(', ')}`]),
    ...(isNullable ? ['or null'] : []),
    ...(isRequired ? ['required'] : []),
    ...(isSaid ? [`default ${typeof defaultValue === 'string' ? defaultValue : JSON.stringify(defaultValue)}`] : []),
  ]
  const name =
    flag.type === 'boolean'
      ? `--${flag.flag}${defaultValue === true ? `, --no-${flag.flag}` : ''}`
      : `--${flag.flag} ${valueName(flag)}`
  return [
    name,
    [description, facts.length === 0 ? '' : `(${facts.join('; ')})`].filter((part) => part !== '').join(' '),
  ]
}

const flagPair = ({ flag, short, value, choices, description }: GlobalFlag): readonly [string, string] => [
  `${short === undefined ? '' : `-${short}, `}--${flag}${value === undefined ? '' : ` ${value}`}`,
  choices === undefined ? description : `${description} One of ${choices.join(', ')}.`,
]

function pairs(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`.trimEnd())
}

/** The reference of the documentation, in Markdown. */
export function reference(commands: readonly Command[]): string {
  const block = (text: string) => ['```', text.trimEnd(), '```', '']
  const nouns = [...new Set(commands.map(({ noun }) => noun))]
  return (
    [
      '# Command reference',
      '',
      'Generated from the list of operations: `UPDATE=1 npx vitest run test/cli/help.test.ts` writes it anew. ' +
        '[cli.md](cli.md) is the guide.',
      '',
      ...block(overview(commands)),
      '## Exit codes',
      '',
      '| Code | Meaning |',
      '|---|---|',
      ...EXIT_MEANINGS.map(([code, meaning]) => `| ${code} | ${meaning} |`),
      '',
      ...OWN_COMMANDS.filter(({ name }) => name !== 'help').flatMap((own) => [
        `## ${own.name}`,
        '',
        ...block(ownHelp(own)),
      ]),
      ...nouns.flatMap((noun) => [
        `## ${noun}`,
        '',
        ...commands
          .filter((command) => command.noun === noun)
          .flatMap((command) => [`### ${nameOf(command)}`, '', ...block(commandHelp(command))]),
      ]),
    ]
      .join('\n')
      .trimEnd() + '\n'
  )
}
