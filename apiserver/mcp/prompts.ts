/** The usual jobs, as prompts. */
import type { Prompt } from '../../kit/http/mcp/prompts.ts'

const server = { name: 'server', description: 'Id or host name of the server.', required: true }

export const PROMPTS: readonly Prompt[] = [
  {
    name: 'create_server',
    title: 'Create a server',
    description: 'Choose zone, plan and template with the person, create the server, and wait until it runs.',
    arguments: [{ name: 'purpose', description: 'What the server is for.', required: true }],
    render: ({ purpose = '' }) =>
      `I need a server for this: ${purpose}\n\n` +
      'Look with list_zones, list_plans, list_templates and list_ssh_keys what there is. Suggest zone, plan and ' +
      'template with the price of a month, and ask me before you create anything. Then call create_server, follow ' +
      'its operation with get_operation until it has ended, and tell me how I sign in.',
  },
  {
    name: 'diagnose_server',
    title: 'Find out what is wrong with a server',
    description: 'Read state, operations, metrics and console of a server, and say what is wrong.',
    arguments: [server],
    render: (values) =>
      `Find out what is wrong with the server ${values['server'] ?? ''}. Read get_server, list_operations with ` +
      'resource=server:<id> and the events of those that failed, its metrics, and read_server_console. Change ' +
      'nothing. Tell me what you found, how sure you are, and what you would do.',
  },
  {
    name: 'run_command',
    title: 'Run a command in a server',
    description: 'Type a command on the serial console of a server and read what it prints.',
    arguments: [server, { name: 'command', description: 'The command.', required: true }],
    render: (values) =>
      `Run this command in the server ${values['server'] ?? ''} and tell me what it prints:\n\n` +
      `${values['command'] ?? ''}\n\n` +
      'Use its serial console: read_server_console tells whether a shell waits, send_server_console_input types ' +
      '(base64, ending with a newline), and read_server_console with the position from before and wait_for reads the ' +
      'output. Ask me before you sign in with a password.',
  },
  {
    name: 'review_costs',
    title: 'Review what the servers cost',
    description: 'List servers with their prices and how busy they are, and say which could be smaller or go.',
    arguments: [],
    render: () =>
      'List my servers with their plan and price, and read the metrics of each. Tell me what they cost in a month in ' +
      'all, which are idle, and which would do with a smaller plan. Change nothing.',
  },
]
