/** The help of the commands, for the screen and for the reference in the documentation; all of it is generated from the
 *  routes. */
import { joined } from '../kit/http/exactly-one.ts'
import { GLOBAL_FLAGS, type GlobalFlag } from './arguments.ts'
import { type Command, type Flag, nameOf, type Parameter } from './commands.ts'
import { EXIT_MEANINGS } from './exit.ts'

export interface OwnCommand {
  readonly name: string
  readonly parameters: string
  readonly summary: string
  readonly description: string
  readonly flags: readonly GlobalFlag[]
}

/** Commands without a route. */
const SIGN_IN_FLAGS = [
  { flag: 'email', value: 'EMAIL', description: 'Who signs in.' },
  { flag: 'code', value: 'CODE', description: 'Code of the authenticator, or a recovery code.' },
] as const
const URL_FLAG = {
  flag: 'url',
  value: 'URL',
  description: 'Address of the service (default http://127.0.0.1:8080, or that of the profile).',
} as const
const SSH_FLAGS = [
  {
    flag: 'identity',
    short: 'i',
    value: 'FILE',
    description: 'A private key; without it those that ssh itself takes.',
  },
  { flag: 'user', short: 'l', value: 'NAME', description: 'Another user than that of the template.' },
  {
    flag: 'accept-new-key',
    description: 'Connect although the guest has not printed its host keys, and remember the one that comes.',
  },
] as const

export const OWN_COMMANDS = [
  {
    name: 'signup',
    parameters: '',
    summary: 'Make an account, and confirm its email address',
    description:
      'Asks for what is not given; SVCCLOUD_PASSWORD holds the password. The link is taken from the mail where the ' +
      'service leaves mails as files in this folder (.svccloud/mail) or in --mails, else it is asked for.',
    flags: [
      URL_FLAG,
      { flag: 'email', value: 'EMAIL', description: 'Your address.' },
      { flag: 'name', value: 'NAME', description: 'Your name.' },
      { flag: 'mails', value: 'DIR', description: 'Folder of the mails, as npm start prints it.' },
    ],
  },
  {
    name: 'confirm-email',
    parameters: 'LINK',
    summary: 'Confirm an email address with the link of its mail',
    description: '',
    flags: [URL_FLAG],
  },
  {
    name: 'whoami',
    parameters: '',
    summary: 'Say who you are, and in which account',
    description:
      'With whatever token: account, role and permissions. svccloud whoami -o name prints the id of the account.',
    flags: [],
  },
  {
    name: 'login',
    parameters: '',
    summary: 'Sign in, and remember it as a profile',
    description:
      'With --token (- reads it from the input) the token is kept as it is. Otherwise email, password and second ' +
      'factor are asked for, or taken from --email, SVCCLOUD_PASSWORD and --code, and a token for this machine ' +
      'is made of them.',
    flags: [
      URL_FLAG,
      { flag: 'token', value: 'TOKEN', description: 'An API token; - reads it from the input.' },
      ...SIGN_IN_FLAGS,
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
    description: 'The token that login made is revoked; one that was given to login stays valid.',
    flags: [],
  },
  {
    name: 'token list',
    parameters: '',
    summary: 'List API tokens',
    description: 'Tokens are managed by people only: it asks for the password, and signs in for this one command.',
    flags: SIGN_IN_FLAGS,
  },
  {
    name: 'token create',
    parameters: 'NAME',
    summary: 'Create an API token, and print it',
    description: 'It is shown this once. It asks for the password, and signs in for this one command.',
    flags: [
      ...SIGN_IN_FLAGS,
      {
        flag: 'scope',
        value: 'SCOPE',
        description: 'read, read_write, or permissions separated by commas (default read_write).',
      },
      { flag: 'expires-at', value: 'INSTANT', description: 'When it ends (default in 90 days; never for none).' },
    ],
  },
  {
    name: 'token revoke',
    parameters: 'TOKEN',
    summary: 'Revoke an API token',
    description: 'By its name or id. It asks for the password, and signs in for this one command.',
    flags: SIGN_IN_FLAGS,
  },
  {
    name: 'ssh',
    parameters: 'SERVER [COMMAND]',
    summary: 'Sign in to a server, or run a command there',
    description:
      "Runs the system's ssh with the address, port and user of the server, and believes only the host keys that the " +
      'guest has printed on its console; while it boots that is waited for. Flags go before COMMAND. Ends with the ' +
      'exit code of ssh.',
    flags: SSH_FLAGS,
  },
  {
    name: 'scp',
    parameters: 'SOURCE... TARGET',
    summary: 'Copy files to or from a server',
    description: "SERVER:PATH is a file of the server. Runs the system's scp as ssh is run.",
    flags: [...SSH_FLAGS, { flag: 'recursive', short: 'r', description: 'Copy folders with what is in them.' }],
  },
  {
    name: 'operation wait',
    parameters: 'OPERATION',
    summary: 'Follow an operation to its end',
    description: 'Ends with 0 when it succeeds, with 5 when it fails or is cancelled.',
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
      'Input that is no terminal is typed; at its end the console is left as soon as the guest is quiet for a second.',
    flags: [{ flag: 'for', value: 'SECONDS', description: 'Leave after so long, and not at the end of the input.' }],
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
    name: 'backup restore-offline',
    parameters: 'BACKUP',
    summary: 'Read a disk out of a backup without the service',
    description:
      'Needs nothing but the place of the backups and the key of the account. Every part is checked; the disk is ' +
      'written as a raw, sparse file. The format is described in docs/backup-format.md.',
    flags: [
      {
        flag: 'from',
        value: 'PLACE',
        description:
          "The account's folder, or its part of a bucket: https://HOST/BUCKET/ACCOUNT, with AWS_ACCESS_KEY_ID, " +
          'AWS_SECRET_ACCESS_KEY and AWS_REGION (default us-east-1) from the environment.',
      },
      { flag: 'key-file', value: 'FILE', description: 'Holds the key: 64 hexadecimal digits.' },
      { flag: 'to', value: 'FILE', description: 'The file that becomes the disk.' },
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
  const { route, flags, exactlyOne } = command
  return [
    `Usage: ${usageOf(command)}`,
    '',
    sentence(route.summary),
    ...(route.description === undefined ? [] : [route.description]),
    ...(flags.length === 0 ? [] : ['', 'Flags:', ...pairs(flags.map((flag) => ownPair(flag, exactlyOne)))]),
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
    ...command.parameters.map(placeholderOf),
    ...command.flags.filter(({ isRequired }) => isRequired).map(flagName),
    ...(command.exactlyOne.length === 0 ? [] : [`{${command.exactlyOne.map(flagName).join(' | ')}}`]),
    ...(command.flags.some(({ isRequired }) => !isRequired) ? ['[FLAGS]'] : []),
  ].join(' ')

/** Placeholder of the argument in texts: `SERVER`. */
export const placeholderOf = ({ name, noun }: Parameter): string =>
  (name === 'id' ? noun : name).toUpperCase().replaceAll('_', '-')

const VALUE_NAMES = {
  text: 'TEXT',
  integer: 'NUMBER',
  boolean: '',
  list: 'A,B,…',
  map: 'KEY=VALUE',
  json: 'JSON',
} as const
const valueName = ({ type }: Flag): string => VALUE_NAMES[type]
const flagName = (flag: Flag): string => `--${flag.flag} ${valueName(flag)}`
const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

function ownPair(flag: Flag, exactlyOne: readonly Flag[]): readonly [string, string] {
  const others = exactlyOne.includes(flag) ? exactlyOne.filter((other) => other !== flag) : []
  const { choices, defaultValue, isRequired, isNullable, isFromFile, description } = flag
  const isSaid =
    defaultValue !== undefined &&
    defaultValue !== '' &&
    JSON.stringify(defaultValue) !== '{}' &&
    JSON.stringify(defaultValue) !== '[]'
  const facts = [
    ...(choices.length === 0 || flag.type === 'boolean' ? [] : [`one of ${choices.join(', ')}`]),
    ...(isFromFile ? ['@FILE reads it from a file'] : []),
    ...(isNullable ? ['or null'] : []),
    ...(isRequired ? ['required'] : []),
    ...(others.length === 0 ? [] : [`exactly one of this and ${joined(others.map((other) => `--${other.flag}`))}`]),
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
