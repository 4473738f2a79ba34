package discover

import (
	"testing"
)

func TestSkills(t *testing.T) {
	const nothing = ""
	check(t, []example{
		{"order", `s p/b; s p/a; s p/a/z; s p/B; s p; s p/a-; s "p/a{"; s p/é; s p/z`, "",
			"skill p/%C3%A9/SKILL.md=s\nskill p/B/SKILL.md=s\nskill p/SKILL.md=s\nskill p/a%7B/SKILL.md=s\nskill p/a-/SKILL.md=s\nskill p/a/SKILL.md=s\nskill p/a/z/SKILL.md=s\nskill p/b/SKILL.md=s\nskill p/z/SKILL.md=s"},
		{"depth", "s p/1/2/3/4/5/6 six; s p/1/2/3/4/5/6/7 seven", "", "skill p/1/2/3/4/5/6/SKILL.md=six"},
		{"hidden", "s p/.git/x; s p/.h; s p/node_modules/x", "", "skill p/.git/x/SKILL.md=s\nskill p/.h/SKILL.md=s\nskill p/node_modules/x/SKILL.md=s"},
		{"empty", ": >p/SKILL.md", "", "skill p/SKILL.md="},
		{"case", "echo >p/skill.md; echo >p/Skill.md; echo >p/xSKILL.md", "", nothing},
		{"link", "echo >l; ln -s ../l p/SKILL.md", "", nothing},
		{"fifo", "mkfifo p/SKILL.md", "", nothing},
		{"directory", "s p/SKILL.md/q", "", "skill p/SKILL.md/q/SKILL.md=s"},
		{"linked directory", "s o; ln -s ../o p/a", "", "skill p/a/SKILL.md=s"},
		{"directory and link to it", "s p/b; ln -s b p/a", "", "skill p/a/SKILL.md=s"},
		{"cycle", "s p/a; ln -s . p/a/l; ln -s .. p/a/u", "", "skill p/a/SKILL.md=s"},
		{"bad name", `s p/ok; s "$(printf 'p/b\377')"`, "", "skill p/ok/SKILL.md=s\nwarning: failed to scan capability path $U/p/b%EF%BF%BD: No such file or directory (os error 2)"},
		{"metadata", "s p; mkdir p/agents; echo -n M >p/agents/openai.yaml", "", "skill p/SKILL.md=s\nmeta p/agents/openai.yaml=M"},
		{"linked metadata", "s p; mkdir p/agents; echo -n M >m; ln -s ../../m p/agents/openai.yaml", "", "skill p/SKILL.md=s\nmeta p/agents/openai.yaml=M"},
		{"metadata without skill", "mkdir p/agents; echo M >p/agents/openai.yaml", "", nothing},
		{"metadata is a directory", "s p; mkdir -p p/agents/openai.yaml", "", "skill p/SKILL.md=s"},
		{"agents is a file", "s p; echo >p/agents", "", "skill p/SKILL.md=s\nwarning: failed to inspect capability file $U/p/agents/openai.yaml: Not a directory (os error 20)"},
		{"bad metadata", `s p; mkdir p/agents; printf 'ab\303' >p/agents/openai.yaml`, "", "skill p/SKILL.md=s\nwarning: capability file $U/p/agents/openai.yaml is not UTF-8: incomplete utf-8 byte sequence from index 2"},
		{"bad skill", `s p '\377'; mkdir p/agents; echo M >p/agents/openai.yaml`, "", "warning: capability file $U/p/SKILL.md is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"},
	})
}

func TestNamespaces(t *testing.T) {
	const bad = `printf '\377'`
	const notUTF8 = " is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"
	check(t, []example{
		{"below", "m p r .codex; m p/a/b n .claude; m p/c n2 .codex; m p/c n3 .claude", "",
			"plugin p/.codex-plugin/plugin.json=r\nns p/.codex-plugin/plugin.json=r\nns p/a/b/.claude-plugin/plugin.json=n\nns p/c/.codex-plugin/plugin.json=n2"},
		{"order", "m p/b r .codex; m p/b- y .claude; m p/b/.x z .codex; m p/b/a z .cursor; m p/é u .codex", "",
			"ns p/%C3%A9/.codex-plugin/plugin.json=u\nns p/b/.codex-plugin/plugin.json=r\nns p/b-/.claude-plugin/plugin.json=y\nns p/b/.x/.codex-plugin/plugin.json=z\nns p/b/a/.cursor-plugin/plugin.json=z"},
		{"above", "m . up .claude; m p/n n .codex", "", "ns .claude-plugin/plugin.json=up\nns p/n/.codex-plugin/plugin.json=n"},
		{"nearest above", "mkdir -p p/q/r; m . up .claude; m p/q near .cursor", "$U/p/q/r", "ns p/q/.cursor-plugin/plugin.json=near"},
		{"above and own", "m . up .claude; m p own .codex", "", "plugin p/.codex-plugin/plugin.json=own\nns p/.codex-plugin/plugin.json=own"},
		{"beyond a bad one", "mkdir p/q; m . up .claude; m p x .codex; " + bad + " >p/.codex-plugin/plugin.json", "$U/p/q",
			"ns .claude-plugin/plugin.json=up\nwarning: capability file $U/p/.codex-plugin/plugin.json" + notUTF8},
		{"above in a link's own path", "m r/q no .codex; mkdir r/q/w; m l up .claude; ln -s ../r/q/w l/p", "$U/l/p", "ns l/.claude-plugin/plugin.json=up"},
		{"bad below hides the next", "m p/n x .codex; m p/n c .claude; " + bad + " >p/n/.codex-plugin/plugin.json", "",
			"warning: capability file $U/p/n/.codex-plugin/plugin.json" + notUTF8},
		{"bad own, good next", "m p x .codex; m p c .claude; " + bad + " >p/.codex-plugin/plugin.json", "",
			"plugin p/.claude-plugin/plugin.json=c\nns p/.claude-plugin/plugin.json=c\nwarning: capability file $U/p/.codex-plugin/plugin.json" + notUTF8},
		{"bad own alone", "m p x .codex; " + bad + " >p/.codex-plugin/plugin.json", "",
			"warning: capability file $U/p/.codex-plugin/plugin.json" + notUTF8 + "\nwarning: capability file $U/p/.codex-plugin/plugin.json" + notUTF8},
		{"linked below", "m p/n x .codex; mv p/n/.codex-plugin/plugin.json y; ln -s ../../../y p/n/.codex-plugin/plugin.json", "", ""},
		{"linked own", "m p x .codex; mv p/.codex-plugin z; ln -s ../z p/.codex-plugin", "", "plugin p/.codex-plugin/plugin.json=x\nns p/.codex-plugin/plugin.json=x"},
		{"own is a directory", "mkdir -p p/.codex-plugin/plugin.json; m p c .cursor", "", "plugin p/.cursor-plugin/plugin.json=c\nns p/.cursor-plugin/plugin.json=c"},
		{"place is a file", "echo >p/.codex-plugin; m p c .claude", "",
			"plugin p/.claude-plugin/plugin.json=c\nns p/.claude-plugin/plugin.json=c\nwarning: failed to inspect capability file $U/p/.codex-plugin/plugin.json: Not a directory (os error 20)"},
		{"root is a manifest's place", "m p r .claude; m p c .codex", "$U/p/.claude-plugin", "ns p/.codex-plugin/plugin.json=c"},
		{"root is called like one", "m .codex-plugin c .codex; echo -n d >.codex-plugin/plugin.json", "$U/.codex-plugin",
			"plugin .codex-plugin/.codex-plugin/plugin.json=c\nns .codex-plugin/.codex-plugin/plugin.json=c\nns .codex-plugin/plugin.json=d"},
		{"as deep as a walk goes", "m p/1/2/3/4/5 five .codex; m p/1/2/3/4/5/6 six .codex", "", "ns p/1/2/3/4/5/.codex-plugin/plugin.json=five"},
	})
}
