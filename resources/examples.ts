/** What the documents show: a request body that works for each operation that needs one, and values for the fields of answers. Tests hold both
 *  against their schemas. */

const ID = '01a1ff50-8add-720c-b721-970d86569b22'
const CODE = '123456'
const REASON = { reason: 'Asked for by the owner on the phone.' }
const SECRET = 'a long walk on the beach'

export const EXAMPLES: Readonly<Record<string, object>> = {
  sign_up: { name: 'Ada', email: 'ada@example.com', password: SECRET, account_name: 'Example' },
  log_in: { email: 'ada@example.com', password: SECRET },
  confirm_email_verification: { token: 'the-token-of-the-mail' },
  request_password_reset: { email: 'ada@example.com' },
  confirm_password_reset: { token: 'the-token-of-the-mail', password: SECRET },
  change_password: { current_password: 'an old walk in the rain', password: SECRET, code: CODE },
  verify_login_second_factor: { challenge: 'the-challenge-of-the-login', code: CODE },
  start_login_second_factor_setup: { challenge: 'the-challenge-of-the-login' },
  finish_login_second_factor_setup: { challenge: 'the-challenge-of-the-login', code: CODE },
  set_account_mfa_policy: { required: true },
  replace_account_recovery_codes: { code: CODE },
  disable_account_totp: { code: CODE },
  finish_account_totp_setup: { code: CODE },
  update_member: { role: 'member' },
  create_invitation: { email: 'grace@example.com', role: 'member' },
  accept_invitation: { invitation: 'the-token-of-the-mail', password: SECRET },
  link_account_organisation: { organisation_id: ID },
  switch_account: { account_id: ID },
  redeem_coupon: { code: 'WELCOME' },
  grant_support_consent: { mode: 'read_only', expires_in_hours: 24, reference: 'Ticket 1024' },
  redeem_support_handoff: { code: 'the-code-of-the-handoff' },
  create_api_token: { name: 'laptop', scope: 'read_write', allowed_cidrs: ['192.0.2.0/24'] },
  create_server: { zone: 'eu-1a', hostname: 'web', plan: 'tiny', template: 'tiny-linux', labels: { tier: 'front' } },
  stop_server: { stop_type: 'soft', timeout_seconds: 60, timeout_action: 'hard' },
  restart_server: { stop_type: 'soft', timeout_seconds: 60, timeout_action: 'fail' },
  rebuild_server: { template: 'tiny-linux', stop: true },
  change_server_plan: { plan: 'small', grow_storage: true, start: true },
  update_server: { title: 'The first', labels: { tier: 'front' }, is_protected: true },
  set_server_ha_policy: { ha_policy: 'restart' },
  set_server_migration_policy: { migration_policy: 'default' },
  set_server_metadata_setting: { enabled: true },
  send_server_console_input: { session_id: '4c6df6c2-5d0b-4f3e-9a52-0f6f4a3c9d11', data: 'aG9zdG5hbWUK' },
  create_init_script: { name: 'first-boot', content: '#!/bin/sh\necho hello > /etc/motd\n' },
  create_server_group: { name: 'web', zone: 'eu-1a', spread: 'host', strict: true },
  update_server_group: { name: 'front' },
  create_ssh_key: { name: 'laptop', public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example.com' },
  send_mcp_message: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  log_in_staff: { email: 'staff@example.com', password: SECRET },
  verify_staff_second_factor: { challenge: 'the-challenge-of-the-login', code: CODE },
  create_public_pool: { zone: 'eu-1a', family: 'ipv6', cidr: '2001:db8::/40', use: 'server_ipv6_prefix' },
  update_public_pool: { state: 'draining', note: 'Moves to another provider.' },
  suspend_account: REASON,
  grant_credit: { label: 'Sorry for the outage', amount_cents: 1000, expires_at: null },
  set_account_quota: { limit: 50 },
  disable_user: REASON,
  enable_user: REASON,
  reset_user_second_factor: REASON,
  create_coupon: { code: 'WELCOME', amount_cents: 1000, valid_from: '2026-01-01T00:00:00Z', valid_until: '2026-12-31T00:00:00Z', max_redemptions: 100, credit_days: 60, is_active: true },
  create_support_session: { mode: 'read_only', reason: 'The console of web stays dark.', ticket: 'Ticket 1024' },
  provision_node: {
    hostname: 'host-7', zone: 'eu-1a', rack: 'rack-2', management_address: '192.0.2.17', bmc: { address: 'https://192.0.2.117', protocol: 'redfish', secret_ref: 'host-7-bmc' }, roles: ['compute'],
  },
  update_node: { rack: 'rack-3', overcommit: 4, labels: { rack_unit: '17' } },
  cordon_node: { reason: 'A fan is loud.' },
  drain_node: { mode: 'live_only', max_parallel: 2, deadline_minutes: 240, notify_hours: 0 },
  start_node_maintenance: { reason: 'New memory.', mode: 'live_then_cold', notify_hours: 24 },
  upgrade_node_agent: { version: '1.4.0' },
  fence_node: { method: 'auto', reason: 'Nobody hears it, and its fans stand still.' },
  force_release_server: { reason: 'The host burned.', attest: 'bob@example.com' },
  verify_audit_chain: { account_id: ID },
}

const AT = '2026-01-01T12:00:00Z'

/** Values by the name of their field; else by its format, else by the last word of its name. Where a schema wants something else under that name,
 *  or takes null and has no value of the whole name, the value is left out. */
export const EXAMPLE_VALUES: Readonly<Record<string, unknown>> = {
  at: AT, 'date-time': AT, date: '2026-01-01', uuid: ID, id: ID, ids: [ID], uri: 'https://cloud.example.com/', url: 'https://cloud.example.com/',
  email: 'ada@example.com', staff_email: 'sam@example.com', staff_name: 'Sam', name: 'example', title: 'The first', label: 'Welcome', hint: 'x7Qp',
  action: 'server.create', actor: `user:${ID}`, status: 'running', step: 'boot', step_index: 2, step_count: 5, error: '', message: 'The guest runs.', state_detail: '', server_id: ID,
  region: 'eu-1', country: 'DE', display_name: 'Europe 1', zone: 'eu-1a', zones: ['eu-1a', 'eu-1b'], unavailable_plans: [], capabilities: [],
  plan: 'tiny', family: 'starter', cores: 1, memory_mebibytes: 256, storage_gibibytes: 2, price_monthly_cents: 100, price_hourly_millicents: 137, hourly_price_millicents: 137,
  template: 'tiny-linux', os_family: 'linux', os_version: '1', default_user: 'root', min_memory_mebibytes: 128, min_storage_gibibytes: 1,
  hostname: 'web', state: 'started', desired_power: 'running', managed_by: null, labels: { tier: 'front' }, mac_address: '52:54:00:12:34:56', boot_storage_id: ID, interface_count: 1,
  public_ipv6: '2001:db8:0:1::1', public_ipv6_prefix: '2001:db8:0:1::/64', ssh_command: 'ssh root@2001:db8:0:1::1',
  public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example.com', fingerprint: 'SHA256:rqBhNGBLRWpBX2Ly7VPLbnWQHvDpJmUFVAbBsRHpCZQ', content: '#!/bin/sh\necho hello > /etc/motd\n',
  source_ip: '192.0.2.7', user_agent: 'svccloud-cli/0.1.0', allowed_cidrs: ['192.0.2.0/24'], token: 'svccloud_w_…', csrf_token: '8c1f…', secret: 'JBSWY3DPEHPK3PXP', challenge: 'the-challenge-of-the-login',
  hash: 'c0535e4be2b79ffd93291305436bf889314e4a3faec05ecffcbb7df31ad9e51a', sequence: 42, cents: 1000, limit: 25, used: 3, next_cursor: null, recovery_codes: ['4f7c-91ab-d2e0'], recovery_codes_remaining: 10,
  code: 'WELCOME', detail: 'A mail is on its way.', reason: 'Asked for by the owner on the phone.', redirect: '/', return_to: '/', platform_role: 'owner', resource_type: 'server',
}
