/** Frontends, backends with their members, and certificates of a load balancer. */
import type { ReactNode } from 'react'
import type {
  LoadBalancer,
  LoadBalancerBackend,
  LoadBalancerFrontend,
  LoadBalancerMember,
} from '../../../client/schema.ts'
import type { OperationId } from '../../api/operations.ts'
import { useMay } from '../../api/session.ts'
import { number, utc } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import type { Option } from '../../ui/field.tsx'
import { Loading, Panel, Row, Soft, Stack } from '../../ui/layout.tsx'
import { State } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { type Question, useQuestion } from '../ask.tsx'
import type { FormField, Values } from '../noun.ts'
import { wordOf } from '../value.tsx'
import {
  type Backend,
  fieldOfPart,
  type Frontend,
  usersOf,
  withBackend,
  withFrontend,
  withoutBackend,
  withoutFrontend,
} from './configuration.ts'

/** As lists and changes have it. */
type Listed = Omit<LoadBalancer, 'frontends' | 'backends'> & Partial<LoadBalancer>

interface TabProps {
  readonly item: Listed
}

interface BalancerProps {
  readonly item: LoadBalancer
}

const READS: readonly OperationId[] = ['get_load_balancer', 'list_load_balancers', 'list_operations']

const options = (ids: readonly string[]): readonly Option[] => ids.map((id) => ({ id, name: id }))
const inWords = (ids: readonly string[]): readonly Option[] => ids.map((id) => ({ id, name: wordOf(id) }))
const MODES = options(['tcp', 'http', 'https'])
const ALGORITHMS = ['round_robin', 'least_connections', 'source_address']
const CHECKS = options(['tcp', 'http'])

/** Its configuration is sent as a whole: nothing is offered before all of it is here. */
export function TrafficTab({ item: { frontends, backends, ...rest } }: TabProps): ReactNode {
  if (frontends === undefined || backends === undefined) return <Loading />
  return <Traffic item={{ ...rest, frontends, backends }} />
}

function Traffic({ item }: BalancerProps): ReactNode {
  const [ask, dialog] = useQuestion(READS)
  const may = useMay()
  const canSet = may('set_load_balancer_configuration')
  const texts = t().balancer
  return (
    <Stack>
      <Row>
        {item.is_configuration_applied ? (
          <State look="good">{texts.applied}</State>
        ) : (
          <State look="busy">{texts.notApplied}</State>
        )}
      </Row>
      <Panel
        title={texts.frontends}
        isBare
        buttons={
          canSet ? (
            <Button
              kind="quiet"
              why={item.backends.length === 0 ? texts.needsBackend : undefined}
              onPress={() => ask(frontendQuestion(item))}
            >
              {texts.addFrontend}
            </Button>
          ) : undefined
        }
      >
        <Frontends item={item} canSet={canSet} ask={ask} />
      </Panel>
      {item.backends.map((backend) => (
        <BackendPanel key={backend.name} item={item} backend={backend} canSet={canSet} ask={ask} />
      ))}
      {canSet ? (
        <Row>
          <Button onPress={() => ask(backendQuestion(item))}>{texts.addBackend}</Button>
        </Row>
      ) : null}
      {dialog}
    </Stack>
  )
}

interface PartProps extends BalancerProps {
  readonly canSet: boolean
  readonly ask: (question: Question) => void
}

/** Everything is one request: what others have changed meanwhile is refused, and not overwritten. */
const configure = (
  title: string,
  rest: Pick<Question, 'bodyOf'> &
    Partial<Pick<Question, 'fields' | 'initial' | 'goes' | 'button' | 'itemsOf' | 'check' | 'fieldOf'>>,
  id: string,
): Question => ({
  operation: 'set_load_balancer_configuration',
  path: { id },
  title,
  button: t().ui.save,
  ...rest,
})

type Parts = readonly { readonly name: string }[]

/** A new one does not take the place of another. */
const isNew = (parts: Parts, { name }: Values): Readonly<Record<string, string>> =>
  parts.some((each) => each.name === name) ? { name: t().balancer.nameTaken } : {}

/** Where it is in what is sent. */
const placeOf = (parts: Parts, before: { readonly name: string } | undefined): number =>
  before === undefined ? parts.length : parts.findIndex(({ name }) => name === before.name)

const FRONTEND_FIELDS = Object.fromEntries(
  ['name', 'port', 'mode', 'backend', 'certificate_ids'].map((name) => [name, name]),
)
const BACKEND_FIELDS = {
  name: 'name',
  algorithm: 'algorithm',
  'health_check.type': 'check',
  'health_check.path': 'check_path',
}

export function frontendQuestion(item: LoadBalancer, before?: LoadBalancerFrontend): Question {
  const texts = t().balancer
  const fields: readonly FormField[] = [
    ...(before === undefined ? [{ name: 'name', isNeeded: true }] : []),
    { name: 'port', isNeeded: true },
    { name: 'mode', label: () => texts.mode, useOptions: () => MODES, isNeeded: true },
    {
      name: 'backend',
      label: () => texts.backend,
      useOptions: () => options(item.backends.map(({ name }) => name)),
      isNeeded: true,
    },
    {
      name: 'certificate_ids',
      as: 'many',
      label: () => texts.certificates,
      useOptions: () => item.certificates.map(({ id, name }) => ({ id, name })),
      isShown: ({ mode }) => mode === 'https',
    },
  ]
  return configure(
    before === undefined ? texts.addFrontend : t().choices.confirm(t().page.edit, before.name),
    {
      fields,
      initial: before === undefined ? { mode: 'tcp', backend: item.backends[0]?.name } : { ...before },
      itemsOf: 'frontends',
      check: (values) => (before === undefined ? isNew(item.frontends, values) : {}),
      fieldOf: (name) =>
        fieldOfPart(name, { list: 'frontends', at: placeOf(item.frontends, before), fields: FRONTEND_FIELDS }),
      bodyOf: (values) => ({ ...withFrontend(item, frontendIn(values, before)) }),
    },
    item.id,
  )
}

const frontendIn = (values: Values, before: LoadBalancerFrontend | undefined): Frontend => ({
  ...before,
  name: before?.name ?? String(values['name'] ?? ''),
  port: Number(values['port']),
  mode: values['mode'] === 'https' || values['mode'] === 'http' ? values['mode'] : 'tcp',
  backend: String(values['backend'] ?? ''),
  certificate_ids:
    values['mode'] === 'https' && Array.isArray(values['certificate_ids']) ? values['certificate_ids'].map(String) : [],
})

export function backendQuestion(item: LoadBalancer, before?: LoadBalancerBackend): Question {
  const texts = t().balancer
  return configure(
    before === undefined ? texts.addBackend : t().choices.confirm(t().page.edit, before.name),
    {
      fields: [
        ...(before === undefined ? [{ name: 'name', isNeeded: true }] : []),
        { name: 'algorithm', label: () => texts.algorithm, useOptions: () => inWords(ALGORITHMS), isNeeded: true },
        { name: 'check', label: () => texts.check, useOptions: () => CHECKS, isNeeded: true },
        { name: 'check_path', label: () => texts.checkPath, isShown: ({ check }) => check === 'http' },
      ],
      initial: {
        algorithm: before?.algorithm ?? 'round_robin',
        check: before?.health_check.type ?? 'tcp',
        check_path: before?.health_check.path ?? '/',
      },
      itemsOf: 'backends',
      check: (values) => (before === undefined ? isNew(item.backends, values) : {}),
      fieldOf: (name) =>
        fieldOfPart(name, { list: 'backends', at: placeOf(item.backends, before), fields: BACKEND_FIELDS }),
      bodyOf: (values) => ({ ...withBackend(item, backendIn(values, before)) }),
    },
    item.id,
  )
}

function backendIn(values: Values, before: LoadBalancerBackend | undefined): Backend {
  const algorithm = values['algorithm']
  return {
    name: before?.name ?? String(values['name'] ?? ''),
    algorithm: algorithm === 'least_connections' || algorithm === 'source_address' ? algorithm : 'round_robin',
    health_check: {
      ...before?.health_check,
      type: values['check'] === 'http' ? 'http' : 'tcp',
      ...(values['check'] === 'http' ? { path: String(values['check_path'] ?? '/') } : {}),
    },
  }
}

function Frontends({ item, canSet, ask }: PartProps): ReactNode {
  const texts = t().balancer
  if (item.frontends.length === 0)
    return (
      <div className="panel-body">
        <Soft>{texts.noFrontends}</Soft>
      </div>
    )
  const remove = ({ name }: LoadBalancerFrontend): void =>
    ask(
      configure(
        t().choices.confirm(t().ui.remove, name),
        { bodyOf: () => ({ ...withoutFrontend(item, name) }), goes: [texts.goesFrontend], button: t().ui.remove },
        item.id,
      ),
    )
  return (
    <Table
      label={texts.frontends}
      items={item.frontends.map((each) => ({ ...each, id: each.name }))}
      columns={[
        { id: 'name', name: t().fields.name, cell: ({ name }) => name },
        { id: 'port', name: t().fields.port, cell: ({ port }) => port, isEnd: true },
        { id: 'mode', name: texts.mode, cell: ({ mode }) => mode },
        { id: 'backend', name: texts.backend, cell: ({ backend }) => backend },
        {
          id: 'actions',
          name: t().list.actions,
          isEnd: true,
          cell: ({ id: _name, ...frontend }) =>
            canSet ? (
              <Row>
                <Button kind="quiet" onPress={() => ask(frontendQuestion(item, frontend))}>
                  {t().page.edit}
                </Button>
                <Button kind="quiet" onPress={() => remove(frontend)}>
                  {t().ui.remove}
                </Button>
              </Row>
            ) : (
              '–'
            ),
        },
      ]}
    />
  )
}

interface BackendProps extends PartProps {
  readonly backend: LoadBalancerBackend
}

function BackendPanel(props: BackendProps): ReactNode {
  const { backend } = props
  const texts = t().balancer
  return (
    <Panel title={`${texts.backend} ${backend.name}`} isBare buttons={<BackendButtons {...props} />}>
      {backend.members.length === 0 ? (
        <div className="panel-body">
          <Soft>{texts.noMembers}</Soft>
        </div>
      ) : (
        <Members {...props} />
      )}
    </Panel>
  )
}

function BackendButtons({ item, backend, canSet, ask }: BackendProps): ReactNode {
  const may = useMay()
  const texts = t().balancer
  const users = usersOf(item, backend.name)
  const removal = configure(
    t().choices.confirm(t().ui.remove, backend.name),
    {
      bodyOf: () => ({ ...withoutBackend(item, backend.name) }),
      goes: [texts.goesBackend(backend.members.length)],
      button: t().ui.remove,
    },
    item.id,
  )
  return (
    <Row>
      {may('add_load_balancer_member') ? (
        <Button kind="quiet" onPress={() => ask(additionOf(item, backend))}>
          {texts.add}
        </Button>
      ) : null}
      {canSet ? (
        <>
          <Button kind="quiet" onPress={() => ask(backendQuestion(item, backend))}>
            {t().page.edit}
          </Button>
          <Button
            kind="quiet"
            why={users.length === 0 ? undefined : texts.isUsed(users.join(', '))}
            onPress={() => ask(removal)}
          >
            {t().ui.remove}
          </Button>
        </>
      ) : null}
    </Row>
  )
}

const additionOf = ({ id }: LoadBalancer, { name }: LoadBalancerBackend): Question => ({
  operation: 'add_load_balancer_member',
  path: { id, name },
  title: t().balancer.addMember(name),
  button: t().balancer.add,
  fields: [
    { name: 'name' },
    { name: 'address' },
    { name: 'port' },
    { name: 'weight', label: () => t().balancer.weight },
  ],
  initial: { weight: 100 },
})

function questionsOf(
  { id }: LoadBalancer,
  { name }: LoadBalancerBackend,
  member: LoadBalancerMember,
): Readonly<Record<'change' | 'remove', Question>> {
  const path = { id, name, member_id: member.id }
  return {
    change: {
      operation: 'update_load_balancer_member',
      path,
      title: t().choices.confirm(t().page.edit, member.name),
      button: t().ui.save,
      fields: [{ name: 'port' }, { name: 'weight', label: () => t().balancer.weight }, { name: 'enabled' }],
      initial: { port: member.port, weight: member.weight, enabled: member.enabled },
    },
    remove: {
      operation: 'remove_load_balancer_member',
      path,
      title: t().choices.confirm(t().ui.remove, member.name),
      button: t().ui.remove,
      goes: [t().balancer.goesMember],
    },
  }
}

function Members({ item, backend, ask }: BackendProps): ReactNode {
  const may = useMay()
  const texts = t().balancer
  const buttonsOf = (member: LoadBalancerMember): ReactNode => {
    const { change, remove } = questionsOf(item, backend, member)
    return (
      <Row>
        {may('update_load_balancer_member') ? (
          <Button kind="quiet" onPress={() => ask(change)}>
            {t().page.edit}
          </Button>
        ) : null}
        {may('remove_load_balancer_member') ? (
          <Button kind="quiet" onPress={() => ask(remove)}>
            {t().ui.remove}
          </Button>
        ) : null}
      </Row>
    )
  }
  return (
    <Table
      label={`${texts.members} ${backend.name}`}
      items={backend.members}
      columns={[
        { id: 'name', name: t().fields.name, cell: ({ name }) => <span dir="auto">{name}</span> },
        { id: 'address', name: t().fields.address, cell: ({ address, port }) => `${address} : ${String(port)}` },
        { id: 'weight', name: texts.weight, cell: ({ weight }) => number(weight), isEnd: true },
        { id: 'health', name: t().fields.is_healthy, cell: healthOf },
        { id: 'actions', name: t().list.actions, isEnd: true, cell: buttonsOf },
      ]}
    />
  )
}

function healthOf({ is_healthy: isHealthy, enabled }: LoadBalancerMember): ReactNode {
  const texts = t().balancer
  if (!enabled) return <State look="off">{texts.off}</State>
  if (isHealthy === null) return <State look="busy">{texts.unknown}</State>
  return isHealthy ? <State look="good">{texts.healthy}</State> : <State look="bad">{texts.unhealthy}</State>
}

export function CertificatesTab({ item }: TabProps): ReactNode {
  const [ask, dialog] = useQuestion(READS)
  const may = useMay()
  const texts = t().balancer
  const add = (): void =>
    ask({
      operation: 'add_load_balancer_certificate',
      path: { id: item.id },
      title: texts.addCertificate,
      button: texts.addCertificate,
      fields: [
        { name: 'name' },
        { name: 'certificate', label: () => texts.certificate, as: 'code' },
        { name: 'private_key', label: () => texts.privateKey, as: 'code' },
      ],
    })
  return (
    <Stack>
      {may('add_load_balancer_certificate') ? (
        <Row>
          <Button onPress={add}>{texts.addCertificate}</Button>
        </Row>
      ) : null}
      {item.certificates.length === 0 ? (
        <Panel>
          <Soft>{texts.noCertificates}</Soft>
        </Panel>
      ) : (
        <Table
          label={texts.certificates}
          items={item.certificates}
          columns={[
            { id: 'name', name: t().fields.name, cell: ({ name }) => name },
            {
              id: 'names',
              name: texts.names,
              cell: ({ dns_names: names }) => <span dir="auto">{names.join(', ')}</span>,
            },
            { id: 'until', name: t().fields.expires_at, cell: ({ not_after: until }) => utc(until) },
            {
              id: 'remove',
              name: t().list.actions,
              isEnd: true,
              cell: ({ id, name }) =>
                may('remove_load_balancer_certificate') ? (
                  <Button
                    kind="quiet"
                    onPress={() =>
                      ask({
                        operation: 'remove_load_balancer_certificate',
                        path: { id: item.id, certificate_id: id },
                        title: t().choices.confirm(t().ui.remove, name),
                        button: t().ui.remove,
                      })
                    }
                  >
                    {t().ui.remove}
                  </Button>
                ) : (
                  '–'
                ),
            },
          ]}
        />
      )}
      {dialog}
    </Stack>
  )
}
