/** The firewall of a server: rules in their order, sent as a whole. */
import './firewall.css'
import { ArrowDown, ArrowUp, Plus, X } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import type { Firewall, FirewallRule, Server } from '../../../client/schema.ts'
import { itemsOf, useList } from '../../api/cache.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { SelectField, Switch, TextField } from '../../ui/field.tsx'
import { Between, Grid, Loading, Panel, Row, Soft, Stack } from '../../ui/layout.tsx'
import { Menu } from '../../ui/menu.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Note, State } from '../../ui/state.tsx'
import { type Editor, type RuleRow, useEditor, useFirewall, type Versioned } from './firewall-editor.ts'
import { cutsSsh, NEW_RULE, portsOf, portsText, type TemplateName, TEMPLATES } from './firewall-rules.ts'

export function FirewallTab({ item }: { readonly item: Server }): ReactNode {
  const { data, error, refetch } = useFirewall(item)
  if (data === undefined && error instanceof Refusal)
    return <ProblemView refusal={error} retry={() => void refetch()} />
  if (data === undefined) return <Loading />
  return <Edited server={item} newest={data} readNewest={async () => (await refetch({ throwOnError: true })).data} />
}

interface EditedProps {
  readonly server: Server
  readonly newest: Versioned
  readonly readNewest: () => Promise<Versioned | undefined>
}

/** The address that the session comes from; empty while it is not known. */
const useOwnAddress = (): string =>
  itemsOf(useList('list_sessions').data).find(({ is_current: isHere }) => isHere)?.source_ip ?? ''

function Edited({ server, newest, readNewest }: EditedProps): ReactNode {
  const editor = useEditor(server.id, newest, readNewest)
  const address = useOwnAddress()
  const { refusal } = editor
  const texts = t().firewall
  const cuts = address !== '' && cutsSsh(editor.base, editor.draft, address)
  return (
    <Stack>
      <Live firewall={newest.firewall} />
      {editor.isOther ? (
        <Note look="busy">
          {texts.changedByOthers}{' '}
          <Button kind="quiet" onPress={editor.takeNewest}>
            {texts.takeTheirs}
          </Button>
        </Note>
      ) : null}
      <Defaults editor={editor} />
      <Rules editor={editor} address={address} />
      {cuts ? <Note look="busy">{texts.cuts(address)}</Note> : null}
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <End editor={editor} cuts={cuts ? texts.cuts(address) : undefined} />
    </Stack>
  )
}

interface EditorProps {
  readonly editor: Editor
}

function Defaults({ editor: { draft, setDefaults } }: EditorProps): ReactNode {
  const may = useMay()
  const texts = t().firewall
  return (
    <Panel>
      <Switch
        label={texts.enabled}
        note={texts.enabledNote}
        isOn={draft.enabled}
        isOff={!may('set_server_firewall')}
        onChange={(enabled) => setDefaults({ enabled })}
      />
      <Grid>
        <Default
          label={texts.inbound}
          value={draft.default_inbound}
          onChange={(next) => setDefaults({ default_inbound: next })}
        />
        <Default
          label={texts.outbound}
          value={draft.default_outbound}
          onChange={(next) => setDefaults({ default_outbound: next })}
        />
      </Grid>
    </Panel>
  )
}

interface RulesProps extends EditorProps {
  readonly address: string
}

function Rules({ editor, address }: RulesProps): ReactNode {
  const { rows, add } = editor
  const list = useRef<HTMLOListElement>(null)
  const texts = t().firewall
  const move = (at: number, by: -1 | 1): void => {
    const held = document.activeElement
    editor.move(at, by)
    // browsers take the focus from an element that is moved
    requestAnimationFrame(() => (held instanceof HTMLElement ? held.focus() : undefined))
  }
  const remove = (row: RuleRow, at: number): void => {
    editor.remove(row)
    requestAnimationFrame(() => focusNear(list.current, at))
  }
  return (
    <Panel
      title={texts.rules}
      buttons={
        <Row>
          <Menu label={texts.templates} entries={templateEntries((name) => add(TEMPLATES[name](address)))}>
            <Button kind="quiet">{texts.templates}</Button>
          </Menu>
          <Button kind="quiet" icon={<Plus aria-hidden="true" />} onPress={() => add([NEW_RULE])}>
            {texts.add}
          </Button>
        </Row>
      }
    >
      <Soft>{rows.length === 0 ? texts.noRules : texts.order}</Soft>
      <ol className="rule-list" ref={list} hidden={rows.length === 0}>
        {rows.map((row, at) => (
          <Rule
            key={row.key}
            at={at}
            rule={row.rule}
            count={rows.length}
            wrong={editor.refusal?.fields ?? {}}
            onChange={(rule, isWrong) => editor.change({ key: row.key, rule, isWrong })}
            onMove={(by) => move(at, by)}
            onRemove={() => remove(row, at)}
          />
        ))}
      </ol>
    </Panel>
  )
}

/** The rule that took the place of the one that was removed; the last one; or the buttons above. */
function focusNear(list: HTMLOListElement | null, at: number): void {
  const near = list?.children[at] ?? list?.lastElementChild ?? list?.closest('section')
  near?.querySelector<HTMLElement>('button')?.focus()
}

interface EndProps extends EditorProps {
  /** What is asked before; undefined when nothing is. */
  readonly cuts: string | undefined
}

function End({ editor, cuts }: EndProps): ReactNode {
  const [isAsking, setAsking] = useState(false)
  const may = useMay()
  const { isChanged, isWrong, isBusy, send, discard } = editor
  const texts = t().firewall
  const why = !may('set_server_firewall')
    ? t().problem.askOwner
    : isWrong
      ? texts.portsWrong
      : isChanged
        ? undefined
        : texts.unchanged
  const confirmed = async (): Promise<void> => {
    await send()
    setAsking(false)
  }
  return (
    <Between>
      <Soft>{isChanged ? texts.changed : texts.unchanged}</Soft>
      <Row>
        <Button kind="quiet" why={isChanged ? undefined : texts.unchanged} onPress={discard}>
          {texts.discard}
        </Button>
        <Button
          kind="primary"
          isBusy={isBusy}
          why={why}
          onPress={() => (cuts === undefined ? void send() : setAsking(true))}
        >
          {texts.apply}
        </Button>
      </Row>
      {isAsking && cuts !== undefined ? (
        <Confirm
          title={texts.cutTitle}
          goes={[cuts]}
          stays={[texts.staysConsole]}
          button={texts.apply}
          isBusy={isBusy}
          onConfirm={() => void confirmed()}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </Between>
  )
}

/** Whether the host of the server applies the newest one. */
function Live({ firewall }: { readonly firewall: Firewall }): ReactNode {
  const { generation, applied_generation: applied } = firewall
  return (
    <div>
      {generation === applied ? (
        <State look="good">{t().firewall.live}</State>
      ) : (
        <State look="busy">{t().firewall.notLive}</State>
      )}
    </div>
  )
}

const templateEntries = (add: (name: TemplateName) => void) =>
  (['ssh', 'web', 'ping'] as const).map((name) => ({
    id: name,
    name: t().firewall.templateNames[name],
    run: () => add(name),
  }))

interface DefaultProps {
  readonly label: string
  readonly value: 'accept' | 'drop'
  readonly onChange: (value: 'accept' | 'drop') => void
}

const Default = ({ label, value, onChange }: DefaultProps): ReactNode => (
  <SelectField
    label={label}
    options={(['drop', 'accept'] as const).map((id) => ({ id, name: t().firewall.words[id] }))}
    value={value}
    onChange={(next) => onChange(next === 'accept' ? 'accept' : 'drop')}
  />
)

interface RuleProps {
  readonly at: number
  readonly count: number
  readonly rule: FirewallRule
  /** What the service refused, by field: `rules.0.port_start`. */
  readonly wrong: Readonly<Record<string, string>>
  readonly onChange: (rule: FirewallRule, isWrong: boolean) => void
  readonly onMove: (by: -1 | 1) => void
  readonly onRemove: () => void
}

const WORDS = {
  direction: ['in', 'out'],
  action: ['accept', 'drop'],
  family: ['any', 'ipv4', 'ipv6'],
  protocol: ['tcp', 'udp', 'icmp', 'any'],
} as const

function Rule({ at, count, rule, wrong, onChange, onMove, onRemove }: RuleProps): ReactNode {
  const texts = t().firewall
  const number = at + 1
  const onKey = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : undefined
    if (!event.altKey || by === undefined) return
    event.preventDefault()
    event.stopPropagation()
    onMove(by)
  }
  return (
    <li aria-label={texts.rule(number)} onKeyDown={onKey}>
      <RuleFields at={at} rule={rule} wrong={wrong} onChange={onChange} />
      <Row>
        <Button
          kind="quiet"
          label={texts.up(number)}
          icon={<ArrowUp aria-hidden="true" />}
          why={at === 0 ? texts.isFirst : undefined}
          onPress={() => onMove(-1)}
        />
        <Button
          kind="quiet"
          label={texts.down(number)}
          icon={<ArrowDown aria-hidden="true" />}
          why={at === count - 1 ? texts.isLast : undefined}
          onPress={() => onMove(1)}
        />
        <Button kind="quiet" label={texts.remove(number)} icon={<X aria-hidden="true" />} onPress={onRemove} />
      </Row>
    </li>
  )
}

type RuleFieldsProps = Pick<RuleProps, 'at' | 'rule' | 'wrong' | 'onChange'>

function RuleFields({ at, rule, wrong, onChange }: RuleFieldsProps): ReactNode {
  // as typed: what is sent follows from it
  const [ports, setPorts] = useState(portsText(rule))
  const [ranges, setRanges] = useState(rule.remote_cidrs.join(', '))
  const isRange = portsOf(ports) !== undefined
  const texts = t().firewall
  const wrongOf = (field: keyof FirewallRule): string | undefined =>
    Object.entries(wrong).find(([name]) => `${name}.`.startsWith(`rules.${String(at)}.${field}.`))?.[1]
  const pick = (name: keyof typeof WORDS): ReactNode => (
    <SelectField
      label={texts.fields[name]}
      options={WORDS[name].map((id) => ({ id, name: texts.words[id] }))}
      value={rule[name]}
      wrong={wrongOf(name)}
      // one of the words that are offered
      onChange={(next) => onChange({ ...rule, [name]: next } as FirewallRule, !isRange)}
    />
  )
  return (
    <div className="rule">
      {pick('action')}
      {pick('direction')}
      {pick('protocol')}
      {pick('family')}
      <TextField
        label={texts.fields.ports}
        value={ports}
        placeholder={texts.anyPort}
        wrong={isRange ? (wrongOf('port_start') ?? wrongOf('port_end')) : texts.portsWrong}
        onChange={(text) => {
          setPorts(text)
          const next = portsOf(text)
          onChange({ ...rule, ...next }, next === undefined)
        }}
      />
      <TextField
        label={rule.direction === 'in' ? texts.fields.from : texts.fields.to}
        value={ranges}
        placeholder={texts.anywhere}
        wrong={wrongOf('remote_cidrs')}
        onChange={(text) => {
          setRanges(text)
          onChange({ ...rule, remote_cidrs: rangesIn(text) }, !isRange)
        }}
      />
      <TextField
        label={texts.fields.comment}
        value={rule.comment}
        wrong={wrongOf('comment')}
        onChange={(comment) => onChange({ ...rule, comment }, !isRange)}
      />
    </div>
  )
}

const rangesIn = (text: string): string[] => text.split(/[\s,]+/).filter((each) => each !== '')
