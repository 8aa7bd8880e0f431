/** Texts of the commands, for the terminal and for the reference in the documentation. Everything comes from the
 *  routes. */
import { joinedNames } from '../kit/http/exactly-one.ts'
import { GLOBAL_FLAGS, type GlobalFlag } from './arguments.ts'
import { type Command, type Flag, nameOf, type Parameter } from './commands.ts'
import { EXIT_MEANINGS } from './exit.ts'
import { sentence } from '../kit/sys/sentence.ts'

export interface OwnCommand {
  readonly name: string
  readonly parameters: string
  readonly summary: string
  readonly description: string
  readonly flags: readonly GlobalFlag[]
}

/** Commands without a route. */
const SIGN_IN_FLAGS = [
  { flag: 'email', value: 'EMAIL', description: 'User who signs in.' },
  { flag: 'code', value: 'CODE', description: 'Code of the authenticator, or a recovery code.' },
] as const
const URL_FLAG = {
  flag: 'url',
  value: 'URL',
  description: 'URL of the service (default http://127.0.0.1:8080, or the URL of the profile).',
} as const
const SSH_FLAGS = [
  {
    flag: 'identity',
    short: 'i',
    value: 'FILE',
    description: 'Private key; by default ssh chooses one.',
  },
  { flag: 'user', short: 'l', value: 'NAME', description: "User to sign in as, instead of the template's user." },
  {
    flag: 'accept-new-key',
    description: 'Connect although the guest has not printed its host keys, and save the key that it presents.',
  },
] as const

export const OWN_COMMANDS = [
  {
    name: 'signup',
    parameters: '',
    summary: 'Create an account and confirm its email address',
    description:
      'Prompts for missing values; SVCCLOUD_PASSWORD provides the password. Reads the link from the email if the ' +
      'service stores emails as files in this folder (.svccloud/mail) or in --mails; otherwise prompts for it.',
    flags: [
      URL_FLAG,
      { flag: 'email', value: 'EMAIL', description: 'Your email address.' },
      { flag: 'name', value: 'NAME', description: 'Your name.' },
      { flag: 'mails', value: 'DIR', description: 'Folder with the emails, as printed by npm start.' },
    ],
  },
  {
    name: 'confirm-email',
    parameters: 'LINK',
    summary: 'Confirm an email address with the link from the email',
    description: '',
    flags: [URL_FLAG],
  },
  {
    name: 'whoami',
    parameters: '',
    summary: 'Show the current user and account',
    description:
      'Works with every token: shows account, role and permissions. svccloud whoami -o name prints the id of the ' +
      'account.',
    flags: [],
  },
  {
    name: 'login',
    parameters: '',
    summary: 'Sign in and save a profile',
    description:
      'With --token (- reads standard input), saves the token unchanged. Otherwise it prompts for email, password ' +
      'and second factor, or uses --email, SVCCLOUD_PASSWORD and --code. It then creates a token for this machine.',
    flags: [
      URL_FLAG,
      { flag: 'token', value: 'TOKEN', description: 'API token; - reads standard input.' },
      ...SIGN_IN_FLAGS,
      {
        flag: 'scope',
        value: 'SCOPE',
        description:
          'Scope of the created token: read, read_write, or permissions separated by commas (default read_write).',
      },
    ],
  },
  {
    name: 'logout',
    parameters: '',
    summary: 'Delete a profile',
    description: 'Revokes the token if login created it; a token that was given to login stays valid.',
    flags: [],
  },
  {
    name: 'token list',
    parameters: '',
    summary: 'List API tokens',
    description: 'Only users can manage tokens: prompts for the password and signs in for this command.',
    flags: SIGN_IN_FLAGS,
  },
  {
    name: 'token create',
    parameters: 'NAME',
    summary: 'Create an API token and print it',
    description: 'The token is shown only once. Prompts for the password and signs in for this command.',
    flags: [
      ...SIGN_IN_FLAGS,
      {
        flag: 'scope',
        value: 'SCOPE',
        description: 'read, read_write, or permissions separated by commas (default read_write).',
      },
      { flag: 'expires-at', value: 'INSTANT', description: 'Expiry time (default in 90 days; never for none).' },
    ],
  },
  {
    name: 'token revoke',
    parameters: 'TOKEN',
    summary: 'Revoke an API token',
    description: 'Takes a name or an id. Prompts for the password and signs in for this command.',
    flags: SIGN_IN_FLAGS,
  },
  {
    name: 'ssh',
    parameters: 'SERVER [COMMAND]',
    summary: 'Sign in to a server, or run a command on it',
    description:
      "Runs the system's ssh with the address, port and user of the server. Accepts only the host keys that the " +
      'guest printed on its console, and waits for them while it boots. Put flags before COMMAND. Returns the ' +
      'exit code of ssh.',
    flags: SSH_FLAGS,
  },
  {
    name: 'scp',
    parameters: 'SOURCE... TARGET',
    summary: 'Copy files to or from a server',
    description: "SERVER:PATH is a file on the server. Runs the system's scp with the same settings as ssh.",
    flags: [...SSH_FLAGS, { flag: 'recursive', short: 'r', description: 'Copy folders with their content.' }],
  },
  {
    name: 'operation wait',
    parameters: 'OPERATION',
    summary: 'Wait for an operation and show its progress',
    description: 'Exits with 0 when the operation succeeds, with 5 when it fails or is cancelled.',
    flags: [],
  },
  {
    name: 'profile',
    parameters: '[list | use NAME]',
    summary: 'List profiles, or select one',
    description:
      'Profiles are stored in $XDG_CONFIG_HOME/svccloud/config.json, which only its owner can read. SVCCLOUD_URL ' +
      'and SVCCLOUD_TOKEN override them.',
    flags: [],
  },
  {
    name: 'console',
    parameters: 'SERVER',
    summary: "Attach this terminal to a server's serial console",
    description:
      'Sends keys to the guest as you type them; Ctrl-] exits. Reconnects automatically after a lost connection. ' +
      'Sends piped input too, and exits at its end once the guest has printed nothing for a second.',
    flags: [
      { flag: 'for', value: 'SECONDS', description: 'Exit after this many seconds, and not at the end of the input.' },
    ],
  },
  {
    name: 'search',
    parameters: 'TEXT',
    summary: 'Search resources of all types',
    description:
      'Finds a part of an id, name, title, address or label, in letters of either case. Prints the 20 best results.',
    flags: [
      { flag: 'type', value: 'TYPE', description: 'Only this type, such as server; may be given more than once.' },
    ],
  },
  {
    name: 'watch',
    parameters: '[TYPE...]',
    summary: 'Show changes of resources as they happen',
    description:
      'Prints a line for each change: type, id, what it is (set, removed or changed), name and state. With -o json, ' +
      'a line of JSON with the complete resource. Types are names of resources, such as server or ssh-key. ' +
      'Reconnects automatically and misses nothing; Ctrl-C exits.',
    flags: [{ flag: 'for', value: 'SECONDS', description: 'Exit after this many seconds.' }],
  },
  {
    name: 'audit verify',
    parameters: '[FILE]',
    summary: "Verify the audit log's hash chain",
    description:
      'Verifies an export (- reads standard input) without contacting the service. Without a file, downloads and ' +
      'verifies the complete log.',
    flags: [
      {
        flag: 'start',
        value: 'HASH',
        description: 'Hash of the entry before the first one, for an export that does not start at entry 1.',
      },
    ],
  },
  {
    name: 'backup restore-offline',
    parameters: 'BACKUP',
    summary: 'Restore a disk from a backup without the service',
    description:
      'Needs only the location of the backups and the key of the account. Verifies every part and writes the disk ' +
      'as a raw, sparse file. docs/backup-format.md describes the format.',
    flags: [
      {
        flag: 'from',
        value: 'PLACE',
        description:
          'Folder of the account, or its part of a bucket: https://HOST/BUCKET/ACCOUNT, with AWS_ACCESS_KEY_ID, ' +
          'AWS_SECRET_ACCESS_KEY and AWS_REGION (default us-east-1) from the environment.',
      },
      { flag: 'key-file', value: 'FILE', description: 'File with the key: 64 hexadecimal digits.' },
      { flag: 'to', value: 'FILE', description: 'Output file for the disk.' },
    ],
  },
  {
    name: 'exec-credential',
    parameters: '--cluster KIND/ID',
    summary: 'Print a cluster token for kubectl',
    description:
      'Exec plugin for kubeconfigs: prints an ExecCredential of client.authentication.k8s.io/v1, which kubectl ' +
      'keeps until it expires. Exits with 1 when the service has no such operation.',
    flags: [
      { flag: 'cluster', value: 'KIND/ID', description: 'Cluster, as in kubernetes-cluster/ID or dev-cluster/ID.' },
    ],
  },
  {
    name: 'api',
    parameters: 'METHOD PATH',
    summary: 'Send a request and print the answer',
    description: 'The body comes from --file.',
    flags: [],
  },
  {
    name: 'completion',
    parameters: 'bash | zsh | fish',
    summary: 'Print the completion script for a shell',
    description: 'For example: source <(svccloud completion bash)',
    flags: [],
  },
  { name: 'help', parameters: '[COMMAND]', summary: 'Show the help of a command', description: '', flags: [] },
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
    'Run svccloud COMMAND --help for details. Names are accepted wherever ids are.',
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

/** The argument in texts: `SERVER`. */
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

function ownPair(flag: Flag, exactlyOne: readonly Flag[]): readonly [string, string] {
  const others = exactlyOne.includes(flag) ? exactlyOne.filter((other) => other !== flag) : []
  const { choices, defaultValue, isRequired, isNullable, isFixed, isFromFile, description } = flag
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
    ...(others.length === 0
      ? []
      : [`exactly one of this and ${joinedNames(others.map((other) => `--${other.flag}`))}`]),
    ...(isFixed ? ['cannot be changed later'] : []),
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
      'Generated from the list of operations with `UPDATE=1 npx vitest run test/cli/help.test.ts`. ' +
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
